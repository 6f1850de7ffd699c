"""Where the text of a module is found: the repository's files, other repositories' files, one unpacked transformers."""

import ast
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

from weighbridge.base.errors import CannotTell, LimitExceeded, NotFound

REPOSITORY: Final = "repository"
"""The package that the repository's own files are read as."""
OTHER_MARK: Final = "--"
"""What stands between another repository's name and its file, as in auto_map."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """One module's text, the path to show for it, and the package its relative imports start from."""

    name: str
    path: str
    text: str
    package: str
    trusted: bool


class TransformersSource:
    """An installed or unpacked transformers package, read and never imported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not (root / "models").is_dir():
            raise NotFound(f"{root} holds no transformers package", hint="name the folder that holds transformers/models")

    @classmethod
    def find(cls, path: str | None = None) -> "TransformersSource":
        """The package at `path`, or the installed one."""
        if path is not None:
            given = Path(path)
            inner = [given, given / "transformers", given / "src" / "transformers"]
            return cls(next((folder for folder in inner if (folder / "models").is_dir()), given))
        spec = importlib.util.find_spec("transformers")
        if spec is None or not spec.submodule_search_locations:
            raise NotFound("the transformers package is not installed", hint="pip install transformers (torch is not needed)")
        return cls(Path(spec.submodule_search_locations[0]))

    @cached_property
    def version(self) -> str:
        """The version that the package's own __init__ states."""
        for line in (self.root / "__init__.py").read_text(encoding="utf-8").splitlines():
            if line.startswith("__version__"):
                return str(ast.literal_eval(line.partition("=")[2].strip()))
        return "0"

    @cached_property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.version.split(".")[0])

    def base(self, module: str) -> Path:
        """The path of a dotted module name, without suffix."""
        return self.root.joinpath(*module.split(".")[1:])

    def file(self, module: str) -> Path | None:
        """The file of a module or of a package's __init__, or None."""
        base = self.base(module)
        plain = base.with_name(base.name + ".py")
        if plain.is_file():
            return plain
        package = base / "__init__.py"
        return package if package.is_file() else None

    def is_package(self, module: str) -> bool:
        """Whether the module is a folder."""
        return self.base(module).is_dir()

    def members(self, package: str) -> tuple[str, ...]:
        """The module names in a package's folder, modelling files and configurations first."""
        stems = sorted(path.stem for path in self.base(package).glob("*.py") if path.name != "__init__.py")
        return tuple(sorted(stems, key=lambda stem: (not stem.startswith(("modeling_", "configuration_")), stem.startswith("modular_"))))

    @cached_property
    def model_folders(self) -> tuple[str, ...]:
        """The folders of models/, longest name first."""
        return tuple(
            sorted((entry.name for entry in os.scandir(self.root / "models") if entry.is_dir()), key=lambda name: (-len(name), name))
        )

    def shown(self, path: Path) -> str:
        """A path as messages show it: transformers/models/..., with no machine's folder in it."""
        return "/".join(("transformers", *path.relative_to(self.root).parts))


@dataclass(slots=True)
class SourceSet:
    """Every text that reading one model may look at, and which of them it did look at."""

    transformers: TransformersSource
    files: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 3_000_000
    read: dict[str, str] = field(default_factory=dict)
    """Shown path -> sha256 of its text."""
    texts: dict[str, SourceText | None] = field(default_factory=dict)

    def find(self, module: str) -> SourceText | None:
        """The text of a dotted module name, or None."""
        if module not in self.texts:
            self.texts[module] = (
                self._repository(module) if module.split(".", maxsplit=1)[0].startswith(REPOSITORY) else self._transformers(module)
            )
        return self.texts[module]

    def take(self, source: SourceText) -> str:
        """The text, noted as read."""
        if source.path not in self.read:
            if len(source.text) > self.max_bytes:
                raise LimitExceeded("source_bytes", f"{source.path} is larger than {self.max_bytes} characters")
            self.read[source.path] = sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()
        return source.text

    def _transformers(self, module: str) -> SourceText | None:
        path = self.transformers.file(module)
        if path is None:
            return None
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        return SourceText(module, self.transformers.shown(path), path.read_text(encoding="utf-8"), package, trusted=True)

    def _repository(self, module: str) -> SourceText | None:
        head, *rest = module.split(".")
        prefix = other_prefix(head)
        stem = prefix + "/".join(rest)
        for path, package in ((stem + ".py", module.rpartition(".")[0]), ((stem + "/" if rest else prefix) + "__init__.py", module)):
            if path in self.files:
                return SourceText(module, path, self.files[path], package, trusted=False)
        return None

    def holds_folder(self, module: str) -> bool:
        """Whether a repository module name is a folder without __init__.py."""
        head, *rest = module.split(".")
        prefix = other_prefix(head) + "".join(part + "/" for part in rest)
        return any(path.startswith(prefix) for path in self.files)

    def locate(self, reference: str) -> tuple[str, str]:
        """Module and class name of an auto_map entry such as `file.Class` or `owner/name--file.Class`."""
        repository, mark, inner = reference.rpartition(OTHER_MARK)
        module, _, name = inner.rpartition(".")
        if not module or not name:
            raise CannotTell(f"auto_map entry {reference!r}", "it is not of the form file.Class", file="config.json", line=0)
        given = mark and not any(path.startswith(repository + OTHER_MARK) for path in self.files)
        if given:
            if f"{module.replace('.', '/')}.py" in self.files:
                return f"{REPOSITORY}.{module}", name
            what = f"the class {name} of {repository}"
            raise CannotTell(what, "its code lies in another repository", file="config.json", hint=f"give {repository} as well")
        return f"{other_package(repository) if mark else REPOSITORY}.{module}", name


def other_package(repository: str) -> str:
    """The package name that another repository's files are read as."""
    return f"{REPOSITORY}_{repository.encode().hex()}"


def other_prefix(package: str) -> str:
    """What the paths of a repository package start with; nothing for the repository itself."""
    code = package[len(REPOSITORY) + 1 :]
    return bytes.fromhex(code).decode() + OTHER_MARK if code else ""
