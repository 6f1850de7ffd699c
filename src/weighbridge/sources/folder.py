"""A model on this machine: a folder, its config.json alone, or a safetensors file with its config beside it.

A link inside a folder is followed only within that folder, or, in the Hub's cache, from a snapshot into its own blobs.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from weighbridge.base.errors import BadHeader, BadInput, NotFound
from weighbridge.sources.code import FILE_BYTES, collect, entry_points
from weighbridge.sources.evidence import NOTHING, Evidence, Facts, Source, TensorIndex
from weighbridge.sources.headers import CheckpointHeader, StoredTensor, parse_index, read_header, stated_bytes
from weighbridge.sources.text import CONFIG_BYTES, INDEX_BYTES, load_object, printable

SHARDS: Final = 1024
INDEXES: Final = (
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors.index.json",
    "pytorch_model.bin.index.json",
    "pytorch_model.safetensors.index.json",
)
SINGLE: Final = ("model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.safetensors")
QUANTIZATION: Final = ("hf_quant_config.json", "quantize_config.json")


def read_folder(folder: Path, *, title: str = "", source: Source = "folder", revision: str | None = None) -> Evidence:
    """Everything a folder holds about its model: config, code, index and headers."""
    raw = read_inside(folder, "config.json", CONFIG_BYTES)
    if raw is None:
        raise _no_config(folder)
    config = load_object(raw, f"{printable(folder.name)}/config.json")
    return beside(
        folder, config, title=title or folder.name or str(folder), source=source, revision=revision, config_path=folder / "config.json"
    )


def read_file(path: Path) -> Evidence:
    """One config.json, or a safetensors file whose config.json stands beside it."""
    if path.suffix == ".safetensors":
        evidence = read_folder(path.parent, title=path.stem, source="file")
        header = CheckpointHeader(read_header(path), (path.name,), path.name)
        return replace(evidence, tensors=header)
    if not path.is_file():
        raise NotFound(f"there is no file {printable(str(path))}")
    config = load_object(read_bytes(path, CONFIG_BYTES), printable(path.name))
    title = path.resolve().parent.name if path.name == "config.json" else path.stem
    return beside(path.parent, config, title=title or path.stem, source="file", config_path=path)


def beside(folder: Path, config: dict[str, Any], *, title: str, source: Source, config_path: Path, revision: str | None = None) -> Evidence:
    """Evidence around a config that has been read already."""
    warnings: list[str] = []
    index = read_index(folder, warnings)
    return Evidence(
        title=printable(title),
        source=source,
        read_at=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        config=config,
        revision=revision,
        config_path=str(config_path),
        files=read_code(folder, config, warnings),
        tensors=read_headers(folder, warnings),
        facts=Facts(
            index=index,
            quantization=_optional(folder, QUANTIZATION, warnings),
            generation=_optional(folder, ("generation_config.json",), warnings),
            pipeline=_optional(folder, ("model_index.json",), warnings),
        ),
        warnings=tuple(warnings),
    )


def read_code(folder: Path, config: Mapping[str, Any], warnings: list[str]) -> dict[str, str]:
    """The Python files that `auto_map` needs, those of them that are in the folder."""
    wanted = entry_points(config)
    listing = (
        [path.relative_to(folder).as_posix() for depth in ("*.py", "*/*.py", "*/*/*.py") for path in folder.glob(depth)] if wanted else []
    )
    files = collect(list(wanted), lambda path: read_inside(folder, path, FILE_BYTES), listing)
    for path in sorted(wanted.keys() - files.keys()):
        where = f"stands in {printable(wanted[path], 80)}" if wanted[path] else "is not beside the config"
        warnings.append(f"the model's code {printable(path)} {where}")
    return files


def read_index(folder: Path, warnings: list[str]) -> TensorIndex | None:
    """The first index file of a folder: names and byte total; the weights themselves stay closed."""
    for name in INDEXES:
        raw = read_inside(folder, name, INDEX_BYTES)
        if raw is not None:
            try:
                return make_index(raw, name)
            except BadInput as error:
                warnings.append(error.message)
    return None


def make_index(raw: bytes, name: str) -> TensorIndex:
    """An index file's bytes -> what it states."""
    weights, metadata = parse_index(raw, name)
    total = metadata.get("total_parameters")
    return TensorIndex(tuple(sorted(weights)), stated_bytes(metadata), name, total if type(total) is int and 0 < total < 1 << 63 else None)


def read_headers(folder: Path, warnings: list[str]) -> CheckpointHeader | None:
    """The headers of a folder's safetensors files; one that lies is an error, an absent shard a warning."""
    for name in SINGLE:
        path = inside(folder, name)
        if path is not None and not _is_pointer(path, warnings):
            return CheckpointHeader(read_header(path), (name,), name)
    for name in INDEXES:
        raw = read_inside(folder, name, INDEX_BYTES) if "safetensors" in name else None
        if raw is not None:
            return _sharded(folder, raw, name, warnings)
    return None


def _sharded(folder: Path, raw: bytes, name: str, warnings: list[str]) -> CheckpointHeader | None:
    weights, metadata = parse_index(raw, name)
    files = sorted(set(weights.values()))
    if len(files) > SHARDS:
        raise BadHeader(f"{name} names {len(files):,} files")
    present = {file: path for file in files if (path := inside(folder, file)) is not None and not _is_pointer(path, warnings)}
    if not present:
        return None
    tensors: dict[str, StoredTensor] = {}
    for path in present.values():
        tensors |= read_header(path)
    header = CheckpointHeader(tensors, tuple(present), name, complete=len(present) == len(files))
    warnings.extend(check_index(header, weights, stated_bytes(metadata)))
    return header


def _is_pointer(path: Path, warnings: list[str]) -> bool:
    """True for what `git clone` leaves in place of a large file where Git LFS is not set up."""
    if path.stat().st_size > 1024 or not read_bytes(path, 1024).startswith(b"version https://git-lfs"):
        return False
    warnings.append(f"{printable(path.name)} is a Git LFS pointer: its header is not here")
    return True


def check_index(header: CheckpointHeader, names: Mapping[str, str], total_bytes: int | None) -> list[str]:
    """What an index states that the headers contradict."""
    if not header.complete:
        return [f"{header.source}: only {len(header.files)} of {len(set(names.values()))} files are here"]
    found = []
    if missing := names.keys() - header.tensors.keys():
        found.append(f"{header.source} names {len(missing)} tensors that no file holds, such as {printable(min(missing))}")
    if total_bytes is not None and total_bytes != header.total_bytes:
        found.append(f"{header.source} states {total_bytes:,} bytes, the files' headers {header.total_bytes:,}")
    return found


def inside(folder: Path, relative: str) -> Path | None:
    """The regular file at a relative path, or None; a link that leaves the folder is an error."""
    path = folder / relative
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise BadInput(f"{printable(relative)} points out of its folder")
    try:
        real, root = path.resolve(strict=True), folder.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{printable(relative)} cannot be followed") from None
    if not (real.is_relative_to(root) or _own_blob(root, real)):
        raise BadInput(f"{printable(relative)} is a link out of its folder", "copy the file itself into the folder")
    return real if real.is_file() else None


def _own_blob(root: Path, real: Path) -> bool:
    for snapshot in (root, *root.parents):
        if snapshot.parent.name == "snapshots":
            return real.parent == snapshot.parent.parent / "blobs"
    return False


def read_inside(folder: Path, relative: str, limit: int) -> bytes | None:
    """A file's bytes, or None where there is none."""
    path = inside(folder, relative)
    return None if path is None else read_bytes(path, limit)


def read_bytes(path: Path, limit: int) -> bytes:
    """A file's bytes; BadInput where it is larger than the limit or cannot be read."""
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise BadInput(f"{printable(path.name)} cannot be read: {error.strerror}") from None
    if len(raw) > limit:
        raise BadInput(f"{printable(path.name)} is larger than the {limit:,} bytes that are read")
    return raw


def _optional(folder: Path, names: tuple[str, ...], warnings: list[str]) -> Mapping[str, Any]:
    for name in names:
        raw = read_inside(folder, name, CONFIG_BYTES)
        if raw is not None:
            try:
                return load_object(raw, name)
            except BadInput as error:
                warnings.append(error.message)
    return NOTHING


def _no_config(folder: Path) -> NotFound:
    name = printable(str(folder))
    if not folder.is_dir():
        return NotFound(f"there is no folder {name}")
    base = _optional(folder, ("adapter_config.json",), []).get("base_model_name_or_path")
    if base:
        return NotFound(f"{name} is an adapter, not a model", f"plan its base model: {printable(str(base), 100)}")
    if (folder / "model_index.json").exists():
        parts = sorted(part.parent.name for part in folder.glob("*/config.json"))[:12]
        return NotFound(f"{name} is a pipeline of several models", f"name one of its parts: {', '.join(map(printable, parts))}")
    return NotFound(f"{name} has no config.json", "give the folder that save_pretrained wrote")
