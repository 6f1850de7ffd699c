"""The header of a safetensors file: names, types and shapes, checked against each other and the file's size.

Format: 8 bytes little-endian length, a JSON object, then the data (huggingface/safetensors README, "Format").
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from weighbridge.base.errors import BadHeader, BadInput, NotFound
from weighbridge.sources.text import INDEX_BYTES, load_object, printable

HEADER_BYTES: Final = 100_000_000
"""The format's own bound on the JSON part."""
TENSORS: Final = 2_000_000
RANK: Final = 64

BITS: Final = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


class StoredTensor(NamedTuple):
    """One tensor as the header states it; `dtype` is the format's own code (`BF16`, `F8_E4M3`, `U8` ...)."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Stored elements: packed words count once."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return (self.numel * BITS[self.dtype] + 7) // 8


@dataclass(frozen=True, slots=True)
class CheckpointHeader:
    """Every tensor of a checkpoint by name, over all its files."""

    tensors: Mapping[str, StoredTensor]
    files: tuple[str, ...]
    source: str
    complete: bool = True
    """False where an index names files that are not there."""

    @property
    def total_parameters(self) -> int:
        """Stored elements of all tensors, as the Hub counts them."""
        return sum(tensor.numel for tensor in self.tensors.values())

    @property
    def bytes_by_dtype(self) -> dict[str, int]:
        """Bytes on disk by the format's dtype code."""
        totals: dict[str, int] = {}
        for tensor in self.tensors.values():
            totals[tensor.dtype] = totals.get(tensor.dtype, 0) + tensor.nbytes
        return totals

    @property
    def total_bytes(self) -> int:
        """Bytes of tensor data, without headers."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one local file; only its header is read."""
    name = printable(path.name)
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            length = header_length(prefix, size, name)
            raw = file.read(length)
    except FileNotFoundError:
        raise NotFound(f"there is no file {name}") from None
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}") from None
    return parse_header(raw, size - 8 - length, name)


def header_length(prefix: bytes, file_bytes: int, where: str) -> int:
    """The length in a file's first 8 bytes, held against the file's size."""
    if len(prefix) < 8 or file_bytes < 8:
        raise BadHeader(f"{where} is {file_bytes} bytes, too short for a safetensors header")
    length = int.from_bytes(prefix, "little")
    if length > HEADER_BYTES:
        raise BadHeader(f"{where} states a header of {length:,} bytes", "this is not a safetensors file")
    if 8 + length > file_bytes:
        raise BadHeader(f"{where} ends inside its header ({file_bytes:,} of {8 + length:,} bytes)")
    return length


def parse_header(raw: bytes, data_bytes: int, where: str) -> dict[str, StoredTensor]:
    """The JSON part of a header -> tensors; `data_bytes` is what follows it in the file."""
    try:
        table = load_object(raw.rstrip(b" \0"), f"the header of {where}", HEADER_BYTES)
    except BadInput as error:
        raise BadHeader(error.message) from None
    table.pop("__metadata__", None)
    tensors, end = check_entries(table, where)
    if end != data_bytes:
        what = (
            f"is truncated: {data_bytes:,} of {end:,} bytes of data"
            if end > data_bytes
            else f"holds {data_bytes - end:,} bytes that no tensor owns"
        )
        raise BadHeader(f"{where} {what}")
    return tensors


def check_entries(table: Mapping[str, object], where: str) -> tuple[dict[str, StoredTensor], int]:
    """Header entries -> tensors and the end of their data: they must follow each other without a hole or an overlap."""
    if len(table) > TENSORS:
        raise BadHeader(f"{where} names {len(table):,} tensors")
    spans: list[tuple[int, int, str]] = []
    tensors: dict[str, StoredTensor] = {}
    for name, entry in table.items():
        tensors[name], (begin, end) = _entry(name, entry, where)
        spans.append((begin, end, name))
    place = 0
    for begin, end, name in sorted(spans):
        if begin != place:
            what = "overlaps the one before it" if begin < place else "leaves a hole before it"
            raise BadHeader(f"{where}: tensor {printable(name)} {what} (offset {begin:,}, expected {place:,})")
        place = end
    return tensors, place


def _entry(name: str, entry: object, where: str) -> tuple[StoredTensor, tuple[int, int]]:
    if not isinstance(entry, dict):
        raise BadHeader(f"{where}: tensor {printable(name)} has no description")
    shape, offsets = _naturals(entry.get("shape"), RANK), _naturals(entry.get("data_offsets"), 2)
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise BadHeader(f"{where}: tensor {printable(name)} has the unknown dtype {printable(str(dtype), 40)!r}")
    if shape is None or offsets is None or len(offsets) != 2:
        raise BadHeader(f"{where}: tensor {printable(name)} has no valid shape and offsets")
    tensor = StoredTensor(dtype, shape)
    begin, end = offsets
    if end - begin != tensor.nbytes:
        raise BadHeader(
            f"{where}: tensor {printable(name)} of {dtype} {list(shape)[:8]} needs {tensor.nbytes} bytes, its offsets hold {end - begin}"
        )
    return tensor, (begin, end)


def _naturals(value: object, limit: int) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > limit:
        return None
    numbers = [item for item in value if type(item) is int and 0 <= item < 1 << 63]
    return tuple(numbers) if len(numbers) == len(value) else None


def parse_index(raw: bytes, where: str) -> tuple[dict[str, str], Mapping[str, Any]]:
    """An index file (`*.index.json`) -> tensor name to file name, and its metadata."""
    table = load_object(raw, where, INDEX_BYTES)
    weights, metadata = table.get("weight_map"), table.get("metadata")
    if not isinstance(weights, dict) or not all(isinstance(file, str) for file in weights.values()):
        raise BadHeader(f"{where} has no weight_map from tensor names to files")
    return weights, metadata if isinstance(metadata, dict) else {}


def stated_bytes(metadata: Mapping[str, Any]) -> int | None:
    """`metadata.total_size` of an index as whole bytes; None where it is absent or not a size."""
    total = metadata.get("total_size")
    return int(total) if isinstance(total, int | float) and math.isfinite(total) and 1 <= total < 1 << 63 else None
