"""The disk cache: what comes back is what went in, and nothing else ever comes back."""

import ast
import os
import pickle
from pathlib import Path

import pytest

from weighbridge.base.cache import Cache, default_folder

TEXT = "class A:\n    x = [1, ...]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def only_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_a_tree_comes_back_as_it_went_in(folder: Path) -> None:
    Cache(folder).store_tree(TEXT, ast.parse(TEXT))
    found = Cache(folder).load_tree(TEXT)
    assert found is not None
    assert ast.dump(found) == ast.dump(ast.parse(TEXT))
    assert Cache(folder).load_tree(TEXT + " ") is None


@pytest.mark.parametrize("position", [0, 25, 60, -1])
def test_a_damaged_entry_is_a_miss(folder: Path, position: int) -> None:
    Cache(folder).store_tree(TEXT, ast.parse(TEXT))
    path = only_file(folder)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    assert Cache(folder).load_tree(TEXT) is None


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def test_a_well_formed_entry_with_foreign_classes_makes_none_of_them(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cache = Cache(folder)
    cache._store(cache._path("tree", TEXT), pickle.dumps(Evil()))
    assert cache.load_tree(TEXT) is None
    assert not (tmp_path / "pwned").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners on this system")
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    Cache(folder).store_json("k", "1", TEXT)
    assert Cache(folder).load_json("k", TEXT) == 1
    folder.chmod(0o770)
    assert Cache(folder).load_json("k", TEXT) is None


def test_a_link_in_the_place_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    Cache(folder).store_json("k", "1", TEXT)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_environment_turns_the_cache_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGH_CACHE", "off")
    assert default_folder() is None
    cache = Cache.default()
    cache.store_json("k", "1", TEXT)
    assert cache.load_json("k", TEXT) is None
