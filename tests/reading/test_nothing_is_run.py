"""Reading a hostile repository opens, imports, compiles, starts and connects to nothing, as Python's own audit events show."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

HOSTILE = Path(__file__).parent.parent / "hostile"
ATTACKS = tomllib.loads((HOSTILE / "attacks.toml").read_text("utf-8"))
SOURCE = Path(__file__).parent.parent.parent / "src"
IMPORTS = """
import torch
from torch import nn
from transformers import PreTrainedModel, PretrainedConfig
"""
CLASSES = """
class C(PretrainedConfig):
    model_type = "probe"

class M(PreTrainedModel):
    config_class = C

    def __init__(self, config):
        super().__init__(config)
        self.known = nn.Linear(3, 5)
"""


def repositories() -> dict[str, dict[str, str]]:
    found = {"warm up": {"m.py": IMPORTS + CLASSES + "        self.layers = nn.ModuleList([nn.Linear(2, 2)])\n        self.post_init()\n"}}
    for name, body in ATTACKS["constructor"].items():
        found[name] = {"m.py": IMPORTS + CLASSES + "".join(f"        {line}\n" for line in body.split("\n"))}
        found[f"{name}, at the top"] = {"m.py": f"{IMPORTS}self = config = nn\n{body}\n{CLASSES}"}
    for name, text in ATTACKS["file"].items():
        found[name] = {"m.py": text, "ring.py": "from .m import M, C\n"}
    return found


def watched(folder: Path, given: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "WEIGH_CACHE": "off"}
    command = [sys.executable, str(HOSTILE / "watched.py"), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, cwd=folder, env=environment, check=False)


def test_reading_hostile_code_touches_nothing(tmp_path):
    cases = repositories()
    done = watched(tmp_path, json.dumps(cases))
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)
    assert sum(outcomes.values()) == len(cases)
    assert outcomes["refused"] > 100
    assert not list(tmp_path.iterdir())


def test_the_hook_sees_what_it_must(tmp_path):
    done = watched(tmp_path, "", "--prove")
    assert done.stdout.split() == ["compile", "exec", "open", "os.listdir", "os.system"], done.stderr[-2000:]
