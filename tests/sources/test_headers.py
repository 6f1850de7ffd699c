"""Safetensors headers: what is right is read, what lies is refused, and nothing else happens."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.loopback_hub import safetensors_bytes
from weighbridge.base.errors import BadHeader, WeighError
from weighbridge.sources import find
from weighbridge.sources.headers import parse_header, read_header

TENSORS = {"a.weight": ("F32", [3, 4]), "b.weight": ("BF16", [5]), "empty": ("F16", [0, 7]), "scalar": ("I64", [])}
WHOLE = safetensors_bytes(TENSORS)


def test_a_file_that_the_safetensors_library_wrote_is_read_the_same(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    library = pytest.importorskip("safetensors.numpy")
    library.save_file(
        {"x": numpy.zeros((2, 3), "float32"), "y": numpy.zeros(4, "int8")}, tmp_path / "m.safetensors", metadata={"format": "pt"}
    )
    tensors = read_header(tmp_path / "m.safetensors")
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()} == {"x": ("F32", (2, 3)), "y": ("I8", (4,))}


def header(entries: dict[str, object], data: int) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too short"),
        (struct.pack("<Q", 1 << 62) + b"{}", "states a header"),
        (struct.pack("<Q", 200) + b"{}", "ends inside"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, 4), "truncated"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, 12), "no tensor owns"),
        (header({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, 8), "needs 12 bytes"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, 12), "hole"),
        (header({n: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for n in "ab"}, 8), "overlaps"),
        (header({"a": {"dtype": "Q9", "shape": [2], "data_offsets": [0, 8]}}, 8), "unknown dtype"),
        (header({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, 8), "no valid shape"),
        (header({"a": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}}, 8), "no valid shape"),
        (header({"a": [1]}, 0), "no description"),
        (struct.pack("<Q", 4) + b"[1] ", "not an object"),
        (struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc", "UTF-8"),
    ],
)
def test_each_lie_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadHeader, match=message):
        read_header(path)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE)), st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6))
def test_any_cut_or_change_of_a_file_gives_a_result_or_a_bad_header(
    tmp_path_factory: pytest.TempPathFactory, cut: int, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(WHOLE)
    for place, byte in changes:
        content[place] = byte
    path = tmp_path_factory.getbasetemp() / "changed.safetensors"
    path.write_bytes(bytes(content[:cut]))
    try:
        read_header(path)
    except WeighError as error:
        assert isinstance(error, BadHeader)  # noqa: PT017  a result is as good


KEYS = st.sampled_from(["dtype", "shape", "data_offsets", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(KEYS, child, max_size=4),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_any_json_header_gives_a_result_or_a_bad_header(entries: dict[str, object]) -> None:
    try:
        parse_header(json.dumps(entries).encode(), 8, "m")
    except WeighError as error:
        assert isinstance(error, BadHeader)  # noqa: PT017  a result is as good


def test_a_safetensors_reference_reads_the_header_and_the_config_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "x"}')
    (tmp_path / "weights.safetensors").write_bytes(WHOLE)
    found = find(str(tmp_path / "weights.safetensors"))
    assert found.source == "file"
    assert found.tensors is not None
    assert found.tensors.total_parameters == 12 + 5 + 0 + 1
    assert found.tensors.bytes_by_dtype == {"F32": 48, "BF16": 10, "F16": 0, "I64": 8}
