"""A .gguf file: its facts and tensor shapes, and what a damaged one or a missing reader says."""

import sys

import gguf
import numpy as np
import pytest

from weighbridge.base.errors import BadHeader, NotFound, UsageError
from weighbridge.sources.gguf import read_gguf


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("A small one")
    writer.add_block_count(2)
    writer.add_tensor("token_embd.weight", np.zeros((8, 4), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_facts_and_tensors_are_read(small):
    evidence = read_gguf(small)
    assert evidence.title == "A small one"
    assert evidence.facts.gguf["fields"]["llama.block_count"] == 2
    assert evidence.facts.gguf["tensors"] == {"token_embd.weight": ("F16", (4, 8))}


def test_a_cut_file_has_no_readable_header(small):
    small.write_bytes(small.read_bytes()[:40])
    with pytest.raises(BadHeader, match=r"small\.gguf has no readable GGUF header"):
        read_gguf(small)


def test_no_file_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        read_gguf(tmp_path / "none.gguf")


def test_without_the_reader_the_message_says_what_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError) as caught:
        read_gguf(small)
    assert "pip install" in caught.value.hint
