"""What every import of interpreted code resolves to: read text, our own text, or a stand-in.

Of transformers, the modules of INTERPRETED are read as they stand; the others are replaced by HELPERS and our prelude, and a name that
neither knows is an Unknown of kind "lib", so that whatever hangs on it makes the answer "cannot tell".
"""

import ast
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any, Final

from weighbridge.base.cache import Cache
from weighbridge.reading.auto_classes import AutoTables
from weighbridge.reading.python import MISSING, Machine, Namespace, SourceModule, Unknown
from weighbridge.reading.python.modules import parse
from weighbridge.reading.source_set import REPOSITORY, SourceSet, SourceText

INTERPRETED: Final = re.compile(
    r"transformers\.(activations|audio_utils|backbone_utils|cache_utils|configuration_utils|image_transforms|masking_utils|modeling_layers"
    r"|modeling_outputs|modeling_rope_utils|pytorch_utils|time_series_utils|vision_utils|utils\.(constants|backbone_utils)|decision(\..*)?|loss(\..*)?"
    r"|integrations\.(heterogeneity(\..*)?|moe|sdpa_attention)|models\.(?!auto(\.|$)).*)"
)
"""The modules of transformers that are read as they stand."""
PRELUDE: Final = "weighbridge.reading.prelude"
PRELUDE_BASE: Final = "transformers_base"
PRELUDE_VERSION_4: Final = "transformers_v4"

ABSENT: Final = Namespace("absent")
"""What a lookup gives where there is nothing (MISSING as a default means to raise)."""

Overlay = Mapping[str, Any]


class Lazy:
    """An overlay entry made when it is first asked for."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class Parsed:
    """The sources parsed last, with what was compiled of them; the ones not used for longest are let go."""

    def __init__(self, size: int = 160) -> None:
        self.size = size
        self.trees: OrderedDict[str, ast.Module] = OrderedDict()

    def tree(self, machine: Machine, text: str, path: str, cache: Cache | None) -> ast.Module:
        """The tree of a text: kept here, kept on disk where there is a cache, or parsed within the machine's limits."""
        found = self.trees.get(text)
        if found is not None:
            self.trees.move_to_end(text)
            return found
        found = cache.load_tree(text) if cache is not None else None
        if found is None:
            found = parse(machine, text, path)
            if cache is not None:
                cache.store_tree(text, found)
        self.trees[text] = found
        if len(self.trees) > self.size:
            self.trees.popitem(last=False)
        return found


class Library:
    """The modules of one read."""

    def __init__(self, machine: Machine, sources: SourceSet, tables: AutoTables, cache: Cache, *, parsed: Parsed) -> None:
        self.machine, self.sources, self.tables, self.cache, self.parsed = machine, sources, tables, cache, parsed
        self.modules: dict[str, SourceModule | Namespace | None] = {}
        self.stand_ins: dict[str, Namespace] = {}
        """Whole modules that are ours: torch, numpy, einops ..."""
        self.overlays: list[Callable[[str, str], Any]] = []
        """(module, name) -> value or MISSING: what is ours inside a module that is otherwise read or replaced; the last one wins."""
        self.presets: dict[str, dict[str, Any]] = {}
        """Module -> names that are ours although the module is read."""
        self.completions: dict[str, Callable[[SourceModule], None]] = {}
        """Module -> what is done to it, once, when it is first imported."""
        self.helpers: list[Callable[[str], Any]] = []
        """name -> value or MISSING, for the modules of transformers that are not read."""

    def resolve(self, machine: Machine, name: str) -> SourceModule | Namespace | None:
        """The module an import names; None where there is none."""
        if name not in self.modules:
            found = self.modules[name] = self._find(name)
            if name in self.completions and isinstance(found, SourceModule):
                self.completions.pop(name)(found)
        return self.modules[name]

    def load(self, name: str) -> SourceModule | Namespace:
        """A module that must be there."""
        module = self.resolve(self.machine, name)
        if module is None:
            raise ModuleNotFoundError(f"No module named '{name}'")
        return module

    def get(self, module: str, name: str) -> Any:
        """One name of a module; AttributeError where it has none."""
        return self.machine.getattr(self.load(module), name)

    def find(self, module: str, name: str) -> Any:
        """One name of a module, or MISSING."""
        value = self.machine.getattr(self.load(module), name, ABSENT)
        return MISSING if value is ABSENT else value

    def prelude(self, name: str) -> SourceModule:
        """One of our own texts."""
        key = f"prelude.{name}"
        module = self.modules.get(key)
        if not isinstance(module, SourceModule):
            text = resources.files(PRELUDE).joinpath(f"{name}.py").read_text(encoding="utf-8")
            dotted = name.replace("_", ".")
            if dotted in self.stand_ins or not dotted.startswith("torch."):
                dotted = key
            module = self.modules[key] = self.machine.source_module(
                dotted, self.parsed.tree(self.machine, text, f"<{name}>", self.cache), f"<{name}>", dotted
            )
        return module

    def has_prelude(self, name: str) -> bool:
        """Whether we have such a text."""
        return resources.files(PRELUDE).joinpath(f"{name}.py").is_file()

    def text_module(self, source: SourceText) -> SourceModule:
        """Read a text as it stands; the trees of a repository's own files are not kept on disk."""
        tree = self.parsed.tree(self.machine, self.sources.take(source), source.path, self.cache if source.trusted else None)
        return self.machine.source_module(source.name, tree, source.path, source.package)

    def real(self, module: str) -> SourceModule:
        """A module of transformers as it stands, even one that imports are not given: for single functions of it."""
        key = f"real.{module}"
        found = self.modules.get(key)
        if not isinstance(found, SourceModule):
            source = self.sources.find(module)
            if source is None:
                raise ModuleNotFoundError(f"No module named '{module}'")
            found = self.modules[key] = self.text_module(source)
        return found

    def _find(self, name: str) -> SourceModule | Namespace | None:
        if name in self.stand_ins:
            return self.stand_ins[name]
        top = name.split(".", maxsplit=1)[0]
        if top == "torch":
            return self._torch(name)
        if top == "transformers":
            return self._transformers(name)
        if top == REPOSITORY or top.startswith(f"{REPOSITORY}_"):
            return self._repository(name)
        own = self.sources.find(f"{REPOSITORY}.{name}")
        return self.resolve(self.machine, f"{REPOSITORY}.{name}") if own is not None else None

    def _torch(self, name: str) -> SourceModule | Namespace:
        text = name.replace(".", "_")
        return self.prelude(text) if self.has_prelude(text) else Namespace(name)

    def _repository(self, name: str) -> SourceModule | Namespace | None:
        source = self.sources.find(name)
        if source is not None:
            return self.text_module(source)
        return Namespace(name, {}, lambda _: MISSING) if self.sources.holds_folder(name) else None

    def _transformers(self, name: str) -> SourceModule | Namespace | None:
        transformers = self.sources.transformers
        if name == "transformers":
            entries = {"__version__": transformers.version}
            return Namespace(name, entries, self.top_level)
        if INTERPRETED.fullmatch(name):
            source = self.sources.find(name)
            if transformers.is_package(name) and name.startswith("transformers.models"):
                return Namespace(name, {}, lambda attribute: self.in_package(name, attribute))
            return self._preset(self.text_module(source)) if source is not None else None
        if self.sources.find(name) is None and not self._has_overlay(name):
            return None
        return Namespace(name, {}, lambda attribute: self.helper(name, attribute))

    def _has_overlay(self, name: str) -> bool:
        return name.startswith(("transformers.models.auto", "transformers.generation"))

    def _preset(self, module: SourceModule) -> SourceModule:
        """Bind what is ours in a module that is otherwise read, before anything in it runs."""
        for name, value in self.presets.get(module.name, {}).items():
            module.namespace[name] = value.make() if isinstance(value, Lazy) else value
        return module

    def overlay(self, module: str, name: str) -> Any:
        """Our own value of a name in a module, or MISSING."""
        for give in reversed(self.overlays):
            value = give(module, name)
            if value is not MISSING:
                return value
        return MISSING

    def helper(self, module: str, name: str) -> Any:
        """A name of a module of transformers that is not read."""
        value = self.overlay(module, name)
        if value is not MISSING:
            return value
        for give in reversed(self.helpers):
            value = give(name)
            if value is not MISSING:
                return value
        if name.startswith("__"):
            return MISSING
        constants = self.sources.find("transformers.utils.constants") if name.isupper() else None
        if constants is not None and defines(constants.text, name):
            return self.find(constants.name, name)
        submodule = f"{module}.{name}"
        if self.sources.find(submodule) is not None:
            return self.resolve(self.machine, submodule)
        return Unknown(submodule, "lib", self.machine.place)

    def in_package(self, package: str, name: str) -> Any:
        """A submodule of a model's folder, or a name that one of its files defines."""
        transformers = self.sources.transformers
        if name.startswith("__"):
            return MISSING
        if transformers.file(f"{package}.{name}") is not None or transformers.is_package(f"{package}.{name}"):
            return self.resolve(self.machine, f"{package}.{name}")
        for member in transformers.members(package):
            source = self.sources.find(f"{package}.{member}") if member.startswith(("modeling_", "configuration_")) else None
            if source is not None and defines(source.text, name):
                return self.find(f"{package}.{member}", name)
        return MISSING

    def model_package(self, model_type: str) -> str:
        """The package that holds a model type."""
        return f"transformers.models.{self.tables.folder(model_type)}"

    def top_level(self, name: str) -> Any:
        """A name of `transformers` itself."""
        value = self.overlay("transformers", name)
        if value is not MISSING:
            return value
        if self.sources.find(f"transformers.{name}") is not None:
            return self.resolve(self.machine, f"transformers.{name}")
        for package in self._packages_for(name):
            value = self.in_package(package, name)
            if value is not MISSING:
                return value
        return self.helper("transformers", name)

    def _packages_for(self, name: str) -> Iterable[str]:
        for model_type in self.tables.types_of(name):
            yield self.model_package(model_type)
        lowered = name.lower()
        for folder in self.sources.transformers.model_folders:
            if folder != "auto" and lowered.startswith(folder.replace("_", "")):
                yield f"transformers.models.{folder}"


def defines(text: str, name: str) -> bool:
    """Whether a text binds a name at its top level, told without parsing it."""
    return (
        re.search(rf"^(?:class {name}\b|def {name}\(|{name}(?::[^=\n]+)? = )", text, re.MULTILINE) is not None
        if name.isidentifier()
        else False
    )
