"""The house's contracts: import arrows, sizes, and nothing in a file that names a machine or a registry."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "weighbridge"
MODULE_LINES, FUNCTION_LINES = 400, 40
# Text that our interpreter reads as a model's source would be: it copies the shape of torch's own classes and is never imported.
PRELUDE = SOURCE / "reading" / "prelude"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if PRELUDE not in path.parents)
TEXT_ENDINGS = {".py", ".toml", ".md", ".json", ".lock", ".txt", ".yml", ".yaml", ".cfg", ".sh", ".svg", ""}
# Put together from pieces, so that this file holds none of them.
MACHINE_PATHS = tuple("/" + path + "/" for path in ("work", "opt/wb", "home", "root"))
REGISTRIES = tuple(f"{name}.org" for name in ("pypi", "pythonhosted", "download.pytorch", "deb.debian"))


def committed():
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.suffix in TEXT_ENDINGS and path.is_file()]


def shown(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_a_module_is_a_sitting_and_says_what_it_is(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    assert ast.get_docstring(ast.parse(text)), "a module says in one line what it is"


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_a_function_fits_a_screen(path):
    long = [
        f"{node.name} is {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long


def test_no_committed_file_names_a_machine_path():
    pattern = re.compile("|".join(rf"(?<![\w.>}}/-]){re.escape(path)}" for path in MACHINE_PATHS))
    found = [shown(path) for path in committed() if pattern.search(path.read_text("utf-8", errors="replace"))]
    assert not found


def test_no_committed_file_names_a_registry_host():
    found = [shown(path) for path in committed() if any(host in path.read_text("utf-8", errors="replace") for host in REGISTRIES)]
    assert not found


def test_a_suppression_says_why():
    pattern = re.compile(r"#\s*(noqa|type: ignore)(?P<rest>[^\n]*)")
    bare = []
    for path in MODULES:
        for match in pattern.finditer(path.read_text("utf-8")):
            codes = re.match(r"(: [A-Z]+\d+(, ?[A-Z]+\d+)*|\[[\w-]+(, ?[\w-]+)*\])\s+\S+", match["rest"])
            if not codes:
                bare.append(f"{shown(path)}: {match[0]}")
    assert not bare


@pytest.mark.parametrize("module", ["weighbridge", "weighbridge.cli", "weighbridge.pipeline"])
def test_no_import_brings_torch_or_transformers(module):
    code = f"import sys, {module}; print(*sorted({{'torch', 'transformers', 'peft', 'accelerate'}} & set(sys.modules)))"
    assert run(code).strip() == ""


def test_importing_the_package_loads_nothing_of_weight():
    loaded = run("import sys; before = set(sys.modules); import weighbridge; print(*sorted(set(sys.modules) - before))").split()
    assert not {name.partition(".")[0] for name in loaded} & {"numpy", "rich", "click", "pydantic", "huggingface_hub"}


def test_the_dependencies_have_lower_bounds_and_the_lock_pins_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    for requirement in wanted:
        assert re.search(r">=|==", requirement), requirement
        assert re.match(r"[\w-]+", requirement)[0].lower() in pinned, "run scripts/write_lock"
    assert pinned["torch"] == "2.13.0"


def test_torch_is_not_a_dependency_of_the_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not [name for name in project["dependencies"] if re.match(r"torch|peft|accelerate", name)]


def test_every_public_name_can_be_had():
    assert run("import weighbridge; print(all(hasattr(weighbridge, name) for name in weighbridge.__all__))").strip() == "True"


def test_the_pages_link_only_to_what_is_there():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "changelog.d").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_commands_that_the_pages_name_are_there_and_can_be_run():
    for page in ROOT.glob("*.md"):
        for name in re.findall(r"^(scripts/\w+)", page.read_text("utf-8"), re.MULTILINE):
            assert os.access(ROOT / name, os.X_OK), f"{page.name}: {name}"


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
