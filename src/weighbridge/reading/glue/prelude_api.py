"""The `glue` namespace that our own interpreted texts import: what is easier said natively."""

import re
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.errors import CannotTell
from weighbridge.phantom import Tensor
from weighbridge.reading.glue.auto_api import model_keywords, needs_repository
from weighbridge.reading.glue.config_classes import ConfigInstance
from weighbridge.reading.glue.module_instance import ModuleInstance, named_buffers, named_parameters, walk
from weighbridge.reading.glue.modules import get_tensor, module_at
from weighbridge.reading.python import MISSING, Class, Machine, Namespace, Native, Property

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

EXPANDED: Final = re.compile(r"^[A-Za-z0-9_\.]+(weight)|(bias)$")
"""transformers takes a mapping for expanded where this matches every name (modeling_utils, get_expanded_tied_weights_keys)."""
SAFE_PATTERN: Final = re.compile(r"[A-Za-z0-9_.\\()?!\[\]^$|:+\-]*")
NESTED_QUANTIFIER: Final = re.compile(r"\([^()]*[+*][^()]*\)[+*{]")
PATTERN_CHARS: Final = 200
ATTENTION: Final = "_attn_implementation_internal"
EXPERTS: Final = "_experts_implementation_internal"


class PreludeApi:
    """The entries of `glue`, bound to one reading."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self.namespace = Namespace(
            "glue", {name: Native(function, name, lazy=True, wants_machine=True) for name, function in self._functions().items()}
        )
        self.namespace.entries["ConfigBase"] = runtime.configs.base
        self.namespace.entries["config_class_from_annotation"] = Property(
            Native(config_class_from_annotation, "config_class", lazy=True, wants_machine=True), on_class=True
        )

    def _functions(self) -> dict[str, Any]:
        return {
            "is_config": lambda machine, value: isinstance(value, ConfigInstance),
            "choose_implementations": self.choose_implementations,
            "module_dtype": self.module_dtype,
            "module_device": lambda machine, module: self.runtime.device,
            "model_keywords": lambda machine, kwargs: model_keywords(kwargs),
            "needs_repository": lambda machine, name, args, kwargs: needs_repository(name, args, kwargs),
            "version_4_ties": version_4_ties,
            "expand_ties": self.expand_ties,
            "tie": tie,
            "find_part": find_part,
            "modules_with": modules_with,
            "get_tensor": get_tensor,
            "cannot_tell": cannot_tell,
        }

    def overlay(self, module: str, name: str) -> Any:
        """Transformers' helpers that answer from this reading."""
        if name == "get_torch_context_manager_or_global_device" and module.startswith("transformers"):
            return Native(lambda: self.runtime.device, name, lazy=True)
        return MISSING

    def choose_implementations(self, machine: Machine, module: ModuleInstance, config: ConfigInstance) -> None:
        """Fill in the attention and experts implementations where the configuration leaves them open.

        Code of version 4 picks its attention class by this while it is built: SDPA where the class says that it can, as from_pretrained
        does; the package for flash attention is not there.
        """
        kind = "eager"
        if self.runtime.custom:
            kind = "sdpa" if machine.getattr(module, "_supports_sdpa", None) is True else "eager"
            if str(config.fields.get(ATTENTION)).startswith("flash"):
                config.fields[ATTENTION] = kind
        for name, chosen in ((ATTENTION, kind), (EXPERTS, "eager")):
            if config.fields.get(name) is None:
                config.fields[name] = chosen

    def module_dtype(self, machine: Machine, module: ModuleInstance) -> Any:
        """The type of the first floating point parameter, or torch's default."""
        for _, tensor in named_parameters(module):
            if tensor.dtype.is_floating_point:
                return tensor.dtype
        return machine.call(self.runtime.torch.torch.get("get_default_dtype"), [])

    def expand_ties(self, machine: Machine, module: ModuleInstance, mapping: dict[str, str]) -> dict[str, str]:
        """Modules and patterns in `_tied_weights_keys` as parameter names, in transformers' own order."""
        if all(EXPANDED.match(name) for name in [*mapping, *mapping.values()]):
            return dict(mapping)
        names = {name for name, _ in named_parameters(module, once=False)} | {name for name, _, _ in named_buffers(module, once=False)}
        machine.tick(len(names) * len(mapping))
        expanded: dict[str, str] = {}
        for target, source in mapping.items():
            sources, targets = _matching(source, names), _matching(target, names)
            if not sources or not targets or len(targets) % len(sources):
                raise ValueError(f"There is an issue with your definition of `tie_weights_keys` for {source}:{target}.")
            for target_name, source_name in zip(targets, cycle(sources), strict=False):
                expanded[target_name] = expanded.get(source_name, source_name)
        return expanded


def _matching(pattern: str, names: set[str]) -> list[str]:
    """The names a pattern finds from their start; a pattern that could run away is refused."""
    if len(pattern) > PATTERN_CHARS or not SAFE_PATTERN.fullmatch(pattern) or NESTED_QUANTIFIER.search(pattern):
        raise CannotTell(f"the pattern {pattern[:60]!r} of _tied_weights_keys", "it is not of a form that is safe to search with")
    compiled = re.compile(f"^{pattern}")
    return sorted(name for name in names if compiled.search(name))


def version_4_ties(machine: Machine, module: ModuleInstance) -> bool:
    """Whether ties follow version 4: its configuration base, or ties listed by name alone."""
    config = module.fields.get("config")
    if isinstance(config, ConfigInstance) and not any(owner.name == "PreTrainedConfig" for owner in config.cls.mro):
        return True
    return isinstance(machine.getattr(module, "_tied_weights_keys", None), (list, tuple))


def tie(machine: Machine, module: ModuleInstance, mapping: dict[str, str]) -> None:
    """Put each source tensor in its target's place."""
    for target, source in mapping.items():
        tensor = get_tensor(machine, module, source)
        path, _, name = target.rpartition(".")
        parent = module_at(module, path, machine)
        if not isinstance(tensor, Tensor) or not isinstance(parent, ModuleInstance):
            raise CannotTell(f"the tie of {target} to {source}", "one of them is unknown")
        if tensor.is_parameter:
            parent.put_parameter(name, tensor)
        else:
            parent.put_buffer(name, tensor, persistent=name not in parent.non_persistent)


def find_part(machine: Machine, module: ModuleInstance, paths: tuple[str, ...]) -> Any:
    """The first submodule that one of the paths leads to, or the module itself."""
    for path in paths:
        try:
            found = module_at(module, path, machine)
        except AttributeError:
            continue
        if found is not None:
            return found
    return module


def modules_with(machine: Machine, module: ModuleInstance, name: str) -> list[ModuleInstance]:
    """The modules, this one included, whose class has a method."""
    found = [part for _, part in walk(module, seen=set())]
    machine.tick(len(found))
    return [part for part in found if part.cls.find(name) is not MISSING]


def cannot_tell(machine: Machine, what: str, why: str) -> None:
    """Refuse, from interpreted text."""
    raise CannotTell(what, why)


def config_class_from_annotation(machine: Machine, cls: Class) -> Any:
    """`config: LlamaConfig` in a class body names its configuration class in version 5."""
    for owner in cls.mro:
        own = owner.namespace.get("config_class")
        if own is not None and not isinstance(own, Property):
            return own
        annotation = owner.annotations.get("config")
        if annotation is not None:
            found = machine.evaluate_annotation(annotation)
            return found if isinstance(found, Class) else None
    return None
