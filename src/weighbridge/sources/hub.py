"""A model on the Hub, through huggingface_hub: its config, its code and its checkpoint's headers; never its weights.

The endpoint, the token and the cache are the library's own: HF_ENDPOINT, HF_TOKEN, HF_HOME and their kin are honoured.
"""

import datetime as dt
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.errors import BadHeader, BadInput, NetworkError, NotFound, WeighError
from weighbridge.sources import folder, graph
from weighbridge.sources.code import FILE_BYTES, collect, entry_points, safe_path
from weighbridge.sources.evidence import NOTHING, Evidence, Facts, Published, TensorIndex
from weighbridge.sources.headers import CheckpointHeader, StoredTensor, check_entries, parse_index, stated_bytes
from weighbridge.sources.hub_errors import translated
from weighbridge.sources.reach import reachable
from weighbridge.sources.text import CONFIG_BYTES, INDEX_BYTES, load_object, printable

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo
    from huggingface_hub.utils._safetensors import SafetensorsFileMetadata

Progress = Callable[[str], None]

ANSWER_SECONDS: Final = 10.0
SHARDS: Final = 256
AT_ONCE: Final = 8
_TRUE: Final = {"1", "ON", "YES", "TRUE"}
_SHA: Final = re.compile(r"[0-9a-f]{40}")


def endpoint() -> str:
    """The Hub's address: HF_ENDPOINT, or the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def told_offline() -> bool:
    """True where HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids asking."""
    return any(os.environ.get(name, "").upper() in _TRUE for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def cache_folder() -> Path:
    """The Hub's cache on this machine, by the library's own rules."""
    stated = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if stated:
        return Path(os.path.expandvars(stated)).expanduser()
    home = os.environ.get("HF_HOME") or os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/huggingface"
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def cached(name: str, *, part: str = "", revision: str | None = None) -> Evidence | None:
    """The evidence that an earlier download left on this machine, or None."""
    repository = cache_folder() / ("models--" + name.replace("/", "--"))
    snapshot = _snapshot(repository, revision or "main")
    place = None if snapshot is None else snapshot / part
    if snapshot is None or place is None or folder.inside(place, "config.json") is None:
        return None
    evidence = folder.read_folder(place, title=_title(name, part), source="hub", revision=snapshot.name)
    when = dt.datetime.fromtimestamp(snapshot.stat().st_mtime, tz=dt.UTC).date().isoformat()
    return replace(evidence, read_at=when)


def fetch(name: str, *, part: str = "", revision: str | None = None, progress: Progress) -> Evidence:
    """What the Hub holds about a model now; each failure is one of our errors."""
    reachable(endpoint())
    progress(f"asking the Hub for {name}")
    with translated(name, revision):
        return _Repository.open(name, part, revision, progress).evidence()


@dataclass(frozen=True, slots=True)
class _Repository:
    """One revision of one model's repository, pinned to the commit that the first answer named."""

    api: "HfApi"
    info: "ModelInfo"
    name: str
    part: str
    revision: str | None
    sizes: Mapping[str, int]
    progress: Progress

    @staticmethod
    def open(name: str, part: str, revision: str | None, progress: Progress) -> "_Repository":
        from huggingface_hub import HfApi, constants  # noqa: PLC0415  heavy, and a catalogue look-up must not pay for it
        from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415  as above

        if constants.HF_HUB_DISABLE_PROGRESS_BARS is None:
            disable_progress_bars()
        api = HfApi(endpoint=endpoint(), library_name="weighbridge")
        info = api.model_info(name, revision=revision, timeout=ANSWER_SECONDS, files_metadata=True)
        if not _SHA.fullmatch(info.sha or ""):
            raise NetworkError("what answered is not the Hub", "check HF_ENDPOINT and the proxy")
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        return _Repository(api, info, name, part, revision, sizes, progress)

    def evidence(self) -> Evidence:
        """Fetch what there is, config first."""
        raw = self._read(self._path("config.json"), CONFIG_BYTES)
        if raw is None:
            raise self._no_config()
        config = load_object(raw, f"{printable(self.name)}/config.json")
        warnings: list[str] = []
        if self.info.id.lower() != self.name.lower():
            warnings.append(f"{self.name} is now named {printable(self.info.id, 100)}")
        index_name, index_raw = self._index()
        return Evidence(
            title=_title(printable(self.info.id, 200), self.part),
            source="hub",
            read_at=graph.today(),
            config=config,
            revision=self.info.sha,
            config_path=self._path("config.json"),
            files=self._code(config, warnings),
            tensors=self._headers(index_name, index_raw, warnings),
            facts=Facts(
                published=self._published(),
                index=_stated_index(index_raw, index_name, warnings),
                quantization=self._optional(folder.QUANTIZATION, warnings),
                generation=self._optional(("generation_config.json",), warnings),
            ),
            warnings=tuple(warnings),
        )

    def _path(self, file: str) -> str:
        return f"{self.part}/{file}" if self.part else file

    def _read(self, path: str, limit: int) -> bytes | None:
        if path not in self.sizes or not safe_path(path):
            return None
        if self.sizes[path] > limit:
            raise BadInput(f"{printable(path)} of {self.name} is {self.sizes[path]:,} bytes, more than the {limit:,} that are read")
        self.progress(f"reading {path}")
        return folder.read_bytes(self._download(path), limit)

    def _download(self, path: str) -> Path:
        """The file in the local cache, fetched if need be.

        A refusal must show at once, but hf_hub_download tries a refused request again for 23 s and waits out a rate
        limit: so the file's metadata is asked for first, which it does without trying again.
        """
        from huggingface_hub import hf_hub_url, try_to_load_from_cache  # noqa: PLC0415  as in open

        found = try_to_load_from_cache(self.name, path, cache_dir=cache_folder(), revision=self.info.sha)
        if isinstance(found, str):
            return Path(found)
        url = hf_hub_url(self.name, path, revision=self.info.sha, endpoint=self.api.endpoint)
        self.api.get_hf_file_metadata(url=url, timeout=ANSWER_SECONDS)
        branch = self.revision or "main"  # by its name, the config makes the cache remember which commit the branch is at
        pinned = branch if path == self._path("config.json") else self.info.sha
        return Path(self.api.hf_hub_download(self.name, path, revision=pinned, cache_dir=cache_folder(), etag_timeout=ANSWER_SECONDS))

    def _optional(self, names: tuple[str, ...], warnings: list[str]) -> Mapping[str, Any]:
        for name in names:
            try:
                raw = self._read(self._path(name), CONFIG_BYTES)
                if raw is not None:
                    return load_object(raw, name)
            except BadInput as error:
                warnings.append(error.message)
        return NOTHING

    def _code(self, config: Mapping[str, Any], warnings: list[str]) -> dict[str, str]:
        wanted = entry_points(config)
        own = [self._path(path) for path, elsewhere in wanted.items() if elsewhere in {"", self.name, self.info.id}]
        files = collect(own, lambda path: self._read(path, FILE_BYTES), self.sizes.keys())
        for other in sorted(set(wanted.values()) - {"", self.name, self.info.id}):
            files |= self._foreign_code(other, [path for path, place in wanted.items() if place == other], warnings)
        return files

    def _foreign_code(self, other: str, paths: list[str], warnings: list[str]) -> dict[str, str]:
        """`auto_map` may name classes of another repository: its code, and a warning that says so."""
        name, _, revision = other.partition("@")
        try:
            with translated(name, revision or None):
                there = _Repository.open(name, "", revision or None, self.progress)
                files = collect(paths, lambda path: there._read(path, FILE_BYTES), there.sizes.keys())  # noqa: SLF001  same class
        except WeighError as error:
            warnings.append(f"the model's code stands in {printable(other, 100)}, which cannot be read: {error.message}")
            return {}
        warnings.append(f"the model's code stands in {printable(other, 100)} at {(there.info.sha or '')[:12]}")
        return files

    def _index(self) -> tuple[str, bytes | None]:
        for name in folder.INDEXES:
            raw = self._read(self._path(name), INDEX_BYTES)
            if raw is not None:
                return name, raw
        return "", None

    def _published(self) -> Published | None:
        stated = getattr(self.info, "safetensors", None)
        total = getattr(stated, "total", None)
        if type(total) is not int or total <= 0 or self.part:
            return None
        return Published(total, "exact", "the Hub's count of safetensors elements", graph.today())

    def _headers(self, index_name: str, index_raw: bytes | None, warnings: list[str]) -> CheckpointHeader | None:
        single = next((path for name in folder.SINGLE if (path := self._path(name)) in self.sizes), None)
        if single is not None:
            return CheckpointHeader(self._file_header(single), (single,), single)
        if index_raw is None or "safetensors" not in index_name:
            return None
        weights, metadata = parse_index(index_raw, index_name)
        files = sorted({self._path(file) for file in weights.values()})
        present = [file for file in files if file in self.sizes and safe_path(file)]
        if not present or len(present) > SHARDS:
            warnings.append(f"{index_name} names {len(files)} files, of which {len(present)} are there; no header was read")
            return None
        tensors: dict[str, StoredTensor] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done, shard in enumerate(pool.map(self._file_header, present), 1):
                tensors |= shard
                self.progress(f"reading headers {done}/{len(present)}")
        header = CheckpointHeader(tensors, tuple(present), index_name, complete=len(present) == len(files))
        warnings.extend(folder.check_index(header, weights, stated_bytes(metadata)))
        return header

    def _file_header(self, path: str) -> dict[str, StoredTensor]:
        parsed = self.api.parse_safetensors_file_metadata(self.name, path, revision=self.info.sha, timeout=ANSWER_SECONDS)
        return _checked(parsed, path, self.sizes[path])

    def _no_config(self) -> NotFound:
        message = f"{_title(self.name, self.part)} has no config.json"
        if self._path("adapter_config.json") in self.sizes:
            base = self._optional(("adapter_config.json",), []).get("base_model_name_or_path", "the model it was made for")
            return NotFound(f"{self.name} is an adapter, not a model", f"plan its base model: {printable(str(base), 100)}")
        parts = sorted(path.split("/")[0] for path in self.sizes if path.count("/") == 1 and path.endswith("/config.json"))
        if parts:
            return NotFound(f"{self.name} holds several models", f"name one: {', '.join(f'{self.name}:{part}' for part in parts[:8])}")
        if any(path.endswith(".gguf") for path in self.sizes):
            return NotFound(message, "it holds GGUF files: name the model they were made from, or download one and give its path")
        return NotFound(message, "give a model in transformers' format, or a folder with a config.json")


def _checked(parsed: "SafetensorsFileMetadata", path: str, file_bytes: int) -> dict[str, StoredTensor]:
    """The library's reading of a header, held to the same checks as a local file's."""
    entries = {
        name: {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": list(tensor.data_offsets)}
        for name, tensor in parsed.tensors.items()
    }
    tensors, end = check_entries(entries, printable(path))
    if file_bytes and end + 8 > file_bytes:
        raise BadHeader(f"{printable(path)} states {end:,} bytes of data, but is {file_bytes:,} bytes long")
    return tensors


def _stated_index(raw: bytes | None, name: str, warnings: list[str]) -> TensorIndex | None:
    if raw is None:
        return None
    try:
        return folder.make_index(raw, name)
    except BadInput as error:
        warnings.append(error.message)
        return None


def _snapshot(repository: Path, revision: str) -> Path | None:
    """The snapshot folder of a branch, a tag or a commit in the cache."""
    if ".." in revision.split("/"):
        return None
    commit = revision
    if not _SHA.fullmatch(revision):
        try:
            commit = (repository / "refs" / revision).read_text().strip()[:40]
        except (OSError, UnicodeDecodeError):
            return None
    found = repository / "snapshots" / commit
    return found if _SHA.fullmatch(commit) and found.is_dir() else None


def _title(name: str, part: str) -> str:
    return f"{name}:{part}" if part else name
