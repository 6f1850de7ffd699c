"""The fuzzer's families of cases: how each is drawn from a seed, and what must hold when it is run.

A case is plain data, so that it can be printed and made smaller. Running it ends in silence (an answer that makes sense), in a WeighError,
or in a finding: any other exception, an answer that cannot be (`Nonsense`), or work past the bounds.
"""

import base64
import io
import json
import random
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import fuzz_values as values
from weighbridge import formats, sources
from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.model import Model
from weighbridge.reading import model_from_graph, model_to_graph
from weighbridge.reading.python import Limits, Machine
from weighbridge.reading.reader import Request, read, read_request
from weighbridge.sources import catalogue, folder, graph, headers, text

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
LIMITS: Final = Limits(steps=150_000, depth=120, cells=150_000, int_bits=65_536, text_chars=1_000_000, source_bytes=1_000_000, seconds=5.0)
BASES: Final = 90
"""How many of the catalogue's model types are mutated."""
NEIGHBOURS: Final = 400
"""Cases in a row that mutate the same model type, so that its source stays parsed."""
SIZES: Final = frozenset(
    values.words(
        "hidden_size vocab_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim d_model d_ff "
        "num_layers n_layer n_head n_embd"
    )
)


class Nonsense(Exception):  # noqa: N818 - a verdict on an answer
    """An answer that cannot be."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of case: its share of all cases, how it is drawn and how it is run."""

    share: int
    draw: Callable[[random.Random, int], Any]
    run: Callable[[Any], None]


def require(holds: bool, what: str) -> None:
    """Raise Nonsense where an answer doesn't make sense."""
    if not holds:
        raise Nonsense(what)


@cache
def attacks() -> dict[str, dict[str, str]]:
    """The attacks written down, by kind and name."""
    with (TESTS / "hostile" / "attacks.toml").open("rb") as file:
        return tomllib.load(file)


# ---------------------------------------------------------------- what was read
def check_model(model: Model, config: dict[str, Any] | None = None) -> None:
    """Shapes are sizes, totals are sums, and no size was taken from a value that is none."""
    for parameter in model.parameters:
        require(
            all(type(size) is int and 0 <= size < 1 << 63 for size in parameter.shape),
            f"a shape: {parameter.name} has {parameter.shape[:8]}",
        )
        require(parameter.numel < 1 << 63, f"a size: {parameter.name} has {parameter.numel} elements")
    try:
        total = model.total
    except CannotTell:
        return
    require(total >= 0, f"a sum: {total}")
    model.active  # noqa: B018 - it must answer
    for key in SIZES & set(config or ()):
        size = config[key] if config else None
        numeric = isinstance(size, int | float) and not isinstance(size, bool)
        require(not (numeric and (size < 0 or size != size or size == float("inf"))), f"a total: {total:,} parameters with {key} = {size}")  # noqa: PLR0124 - NaN


# ---------------------------------------------------------------- configs
@cache
def base_configs() -> tuple[dict[str, Any], ...]:
    """One small config for each of many model types."""
    found: dict[str, dict[str, Any]] = {}
    for name in catalogue.names():
        config = catalogue.get(name).config
        kind = config.get("model_type")
        if isinstance(kind, str) and kind not in found and not config.get("auto_map") and len(values.dump(config)) < 20_000:
            found[kind] = small(config)
    return tuple(found[kind] for kind in sorted(found))[:BASES]


def small(config: Any) -> Any:
    """The same config with few layers and few of what is made once for each label."""
    if not isinstance(config, dict):
        return config
    result = {key: small(value) for key, value in config.items() if key not in {"id2label", "label2id", "layer_types"}}
    for key, value in result.items():
        if type(value) is int and value > 2 and ("layers" in key or key in {"n_layer", "depth", "num_experts", "n_routed_experts"}):
            result[key] = 2
    return result


def draw_config(draw: random.Random, index: int) -> Any:
    """A small config of a real model, edited."""
    bases = base_configs()
    config = json.loads(json.dumps(bases[index // NEIGHBOURS % len(bases)]))
    values.mutate(draw, config, draw.choice((1, 1, 1, 2, 3)))
    return config


def run_config(config: Any) -> None:
    """Read it with the installed transformers."""
    check_model(read_request(Request("fuzz", config, {}, None, None, LIMITS)), config)


# ---------------------------------------------------------------- sources
HEAD: Final = (
    "import torch\nfrom torch import nn\nfrom transformers import PreTrainedModel, PretrainedConfig\n\nclass C(PretrainedConfig):\n"
    "    model_type = 'probe'\n\nclass M(PreTrainedModel):\n    config_class = C\n\n    def __init__(self, config):\n"
    "        super().__init__(config)\n        self.known = nn.Linear(3, 5)\n"
)
CUSTOM: Final = {"model_type": "probe", "auto_map": {"AutoConfig": "m.C", "AutoModel": "m.M"}, "hidden_size": 4}
TORCH_NAMES: Final = values.words(
    "nn.Linear nn.Embedding nn.Conv1d nn.Conv2d nn.LayerNorm nn.Parameter nn.ModuleList nn.ModuleDict nn.Sequential nn.LSTM "
    "nn.Dropout nn.MultiheadAttention nn.ParameterList nn.Bilinear torch.zeros torch.ones torch.empty torch.randn "
    "torch.arange torch.tensor torch.cat torch.stack torch.linspace torch.full torch.eye torch.finfo torch.dtype torch.device "
    "self.register_buffer self.register_parameter self.add_module self.known.weight self.known.weight.view "
    "self.known.weight.expand self.known self.known.weight.reshape self.known.weight.as_strided self.known.weight.T "
    "self.known.weight.tolist self.post_init config.hidden_size config.to_dict"
)


def constructor(body: str) -> dict[str, str]:
    """The one file whose model's __init__ holds these lines."""
    return {"m.py": HEAD + "".join(f"        {line}\n" for line in body.split("\n"))}


def torch_line(draw: random.Random) -> str:
    """A statement that makes tensors or modules of anything."""
    parts = [draw.choice(("", "", "", "*")) + values.expression(draw, 3) for _ in range(draw.randrange(4))]
    target = draw.choice(("x", "self.a", "self.known.weight", "self.known", "self.b"))
    return f"{target} = {draw.choice(TORCH_NAMES)}({', '.join(parts)})"


def draw_custom(draw: random.Random, _index: int) -> Any:
    """A repository of hostile Python."""
    bodies, files = list(attacks()["constructor"].values()), list(attacks()["file"].values())
    kind = draw.random()
    if kind < 0.1:
        return {"m.py": draw.choice(files)} | ({"ring.py": "from .m import M, C\n"} if draw.random() < 0.3 else {})
    if kind < 0.2:
        return {"m.py": values.splice(draw, draw.choice(files), draw.choice(files))}
    if kind < 0.45:
        return constructor(values.splice(draw, draw.choice(bodies), draw.choice(bodies)))
    if kind < 0.55:
        return {"m.py": values.splice(draw, constructor(draw.choice(bodies))["m.py"], draw.choice(files) or "x")}
    lines = [values.guarded(draw, [torch_line(draw)] if kind < 0.85 else values.statement(draw)) for _ in range(draw.randrange(1, 6))]
    return constructor("\n".join(["x, y, z = [1], {'a': 1}, 'z'", *(line for each in lines for line in each)]))


def run_custom(files: Any) -> None:
    """Read it as a model with code of its own."""
    check_model(read_request(Request("fuzz", CUSTOM, files, None, None, LIMITS)))


def draw_snippet(draw: random.Random, _index: int) -> Any:
    """A text of plain Python."""
    snippets = list(attacks()["snippet"].values())
    kind = draw.random()
    if kind < 0.2:
        return values.splice(draw, draw.choice(snippets), draw.choice(snippets))
    return values.program(draw) if kind < 0.95 else values.splice(draw, values.program(draw), values.program(draw))


OWN: Final = ("'NoneType' object has no attribute 'payload'", "'Class'", "'Instance'", "'Native'", "'Frame'", "'Machine'")


def run_snippet(source: Any) -> None:
    """Run main() of a text: what leaves the machine must be explained as one of our errors."""
    machine = Machine(LIMITS)

    def whole() -> Any:
        module = machine.source_module("fuzz", source, "fuzz.py", "")
        return machine.call(machine.getattr(module, "main"), [])

    try:
        machine.run(whole)
    except WeighError:
        raise
    except Exception as error:
        require(
            not isinstance(error, NameError | SystemError) or "is not defined" in str(error) or "not associated" in str(error),
            f"our own error: {error!r}",
        )
        explained = machine.explain(error)
        require(isinstance(explained, WeighError), f"an explanation: {error!r} was explained as {explained!r}")
        raise explained from error


# ---------------------------------------------------------------- files
def header_bytes(draw: random.Random) -> bytes:
    """A safetensors file of a few small tensors, honest."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}} if draw.random() < 0.5 else {}
    place = 0
    for number in range(draw.randrange(1, 5)):
        shape = [draw.randrange(4) for _ in range(draw.randrange(4))]
        kind = draw.choice(tuple(headers.BITS))
        size = headers.StoredTensor(kind, tuple(shape)).nbytes
        table[f"layer.{number}.weight"] = {"dtype": kind, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    if draw.random() < 0.6:
        values.mutate(draw, table, draw.randrange(1, 3))
    raw = values.dump(table)
    length = draw.choice((len(raw), len(raw), len(raw), len(raw) - 1, len(raw) + 1, 0, 2**64 - 1, 2**32, 8))
    return length.to_bytes(8, "little") + raw + bytes(min(place, 10_000))


def draw_header(draw: random.Random, _index: int) -> Any:
    """A safetensors file, mostly damaged."""
    raw = header_bytes(draw)
    return base64.b64encode(values.damage(draw, raw, draw.randrange(1, 4)) if draw.random() < 0.6 else raw).decode()


def run_header(encoded: Any) -> None:
    """Parse it: what is accepted must add up."""
    raw = base64.b64decode(encoded)
    length = headers.header_length(raw[:8], len(raw), "fuzz.safetensors")
    tensors = headers.parse_header(raw[8 : 8 + length], len(raw) - 8 - length, "fuzz.safetensors")
    found = headers.CheckpointHeader(tensors, ("fuzz.safetensors",), "fuzz.safetensors")
    require(found.total_bytes == len(raw) - 8 - length, "the tensors' bytes are not the file's")
    require(found.total_parameters >= 0, "a negative total")


def draw_json(draw: random.Random, index: int) -> Any:
    """Text that may be JSON."""
    bases = base_configs()
    kind = draw.random()
    if kind < 0.5:
        raw = values.damage(draw, values.dump(bases[index % len(bases)])[:3000], draw.randrange(1, 6))
    elif kind < 0.8:
        raw = values.dump(values.value(draw))
    else:
        piece = draw.choice(
            (
                b"[",
                b'{"a":',
                b"{",
                b'"',
                b"-",
                b"1",
                b"\xff\xfe",
                b"\xef\xbb\xbf",
                b"[1,",
                b"\\u0000",
                b" ",
                b"//",
                b"9" * 100,
                b"1e",
                b"0.",
            )
        )
        raw = draw.choice((b"", b'{"a": ')) + piece * draw.choice((1, 3, 100, 100_000))
    return base64.b64encode(raw).decode()


def run_json(encoded: Any) -> None:
    """Load it: an object comes out, or BadInput."""
    found = text.load_object(base64.b64decode(encoded), "config.json")
    require(isinstance(found, dict), "not an object")
    json.dumps(found)


def draw_index(draw: random.Random, _index: int) -> Any:
    """An index file, edited."""
    document: dict[str, Any] = {
        "metadata": {"total_size": 48, "total_parameters": 12},
        "weight_map": {f"layer.{number}.weight": f"model-{number}.safetensors" for number in range(3)},
    }
    values.mutate(draw, document, draw.randrange(1, 4))
    raw = values.dump(document)
    return base64.b64encode(values.damage(draw, raw, 1) if draw.random() < 0.3 else raw).decode()


def run_index(encoded: Any) -> None:
    """Parse it."""
    found = folder.make_index(base64.b64decode(encoded), "model.safetensors.index.json")
    require(found.total_bytes is None or found.total_bytes > 0, "bytes below one")
    require(found.total_parameters is None or found.total_parameters >= 0, "parameters below none")


@cache
def base_graph() -> bytes:
    """The graph of a small model with code of its own."""
    return values.dump(
        model_to_graph(
            read_request(Request("fuzz", CUSTOM, constructor("self.layers = nn.ModuleList([nn.Linear(2, 2)])"), None, None, None))
        )
    )


def draw_graph(draw: random.Random, _index: int) -> Any:
    """A graph file, edited."""
    document = json.loads(base_graph())
    values.mutate(draw, document, draw.choice((1, 1, 2, 3)))
    return document


def run_graph(document: Any) -> None:
    """Take the model out of it."""
    if not graph.is_graph(document):
        return
    evidence = graph.evidence(document, "fuzz.weigh.json")
    require(evidence.graph is not None, "a graph without a graph")
    model = model_from_graph(document)
    check_model(model)
    model.structure()


def draw_folder(draw: random.Random, index: int) -> Any:
    """A folder of several such files."""
    bases = base_configs()
    config = dict(CUSTOM) if draw.random() < 0.5 else dict(bases[index // NEIGHBOURS % len(bases)])
    if draw.random() < 0.5:
        values.mutate(draw, config, 1)
    files = {"config.json": base64.b64encode(values.dump(config)).decode()}
    if draw.random() < 0.7:
        files["model.safetensors"] = draw_header(draw, index)
    if draw.random() < 0.4:
        files[draw.choice(("model.safetensors.index.json", "generation_config.json", "hf_quant_config.json"))] = draw_index(draw, index)
    if "auto_map" in config:
        files |= {name: base64.b64encode(code.encode("utf-8", "surrogatepass")).decode() for name, code in draw_custom(draw, index).items()}
    return files


def run_folder(files: Any) -> None:
    """Find and read it as a user would."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as name:
        for path, encoded in files.items():
            Path(name, path).write_bytes(base64.b64decode(encoded))
        evidence = sources.find(name)
        check_model(read(evidence, limits=LIMITS))


# ---------------------------------------------------------------- words
def draw_reference(draw: random.Random, _index: int) -> Any:
    """What somebody may type for a model."""
    pieces = (
        *values.TEXTS,
        "Qwen/Qwen3-8B",
        "Qwen",
        "/",
        "@main",
        ":part",
        "://",
        "..",
        "-",
        "@",
        " ",
        "a/b/c",
        ".json",
        ".safetensors",
        ".bin",
    )
    return "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 4)))


def run_reference(reference: Any) -> None:
    """Take it apart."""
    if reference.strip() == "-":
        return
    sources.parse_id(reference)


@cache
def golden() -> tuple[dict[str, Any], ...]:
    """The golden reports, as documents."""
    return tuple(json.loads(path.read_text("utf-8")) for path in sorted((TESTS / "golden" / "reports").glob("*.json")))


CHOICES: Final = frozenset(
    values.words("schema verdict kind method precision optimizer attention layout loop loss lora_targets adapter_dtype kv_dtype engine")
)
"""Texts of a report that are ours, whatever was read."""


def draw_page(draw: random.Random, index: int) -> Any:
    """A report with hostile words."""
    document = json.loads(json.dumps(golden()[index % len(golden())]))
    texts = [path for path in values.places(document) if isinstance(_at(document, path), str) and path[-1] not in CHOICES]
    for path in draw.sample(texts, min(len(texts), draw.randrange(1, 6))):
        hostile = "".join(
            draw.choice((*values.TEXTS, "*", "#", "!", "\n", "\x9b", "&amp;", "<img src=x>", "$(x)", "---")) for _ in range(3)
        )
        _at(document, path[:-1])[path[-1]] = hostile
    return document


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def run_page(document: Any) -> None:
    """Render it in every format: no control character gets through."""
    from weighbridge.formats.json import parse  # noqa: PLC0415 - at its single use

    report = parse(json.dumps(document))
    for name in formats.FORMATS:
        for width in (20, 80):
            page = formats.render(report, name, formats.View(width=width))
            controls = [character for character in page if character != "\n" and not character.isprintable()]
            require(name == "json" or not controls, f"{name}: holds the control characters {controls[:5]!r}")
            with suppress(UnicodeEncodeError):
                io.StringIO().write(page)


FAMILIES: Final[dict[str, Family]] = {
    "header": Family(22, draw_header, run_header),
    "json": Family(16, draw_json, run_json),
    "index": Family(6, draw_index, run_index),
    "graph": Family(8, draw_graph, run_graph),
    "reference": Family(5, draw_reference, run_reference),
    "page": Family(1, draw_page, run_page),
    "snippet": Family(26, draw_snippet, run_snippet),
    "custom": Family(8, draw_custom, run_custom),
    "config": Family(6, draw_config, run_config),
    "folder": Family(2, draw_folder, run_folder),
}


def draw_case(seed: int, index: int, only: str = "") -> tuple[str, Any]:
    """The case of that number: its family and its data; nothing but seed and number decide it."""
    draw = random.Random(f"{seed}:{index}")  # noqa: S311 - a plan, not a secret
    name = draw.choices(tuple(FAMILIES), [family.share for family in FAMILIES.values()])[0]
    name = only or name
    return name, FAMILIES[name].draw(draw, index)
