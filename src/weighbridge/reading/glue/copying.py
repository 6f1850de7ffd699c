"""copy.copy and copy.deepcopy for modules and tensors."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.phantom import Tensor
from weighbridge.reading.glue.module_instance import ModuleInstance
from weighbridge.reading.glue.templates import Copier
from weighbridge.reading.python import MISSING, Native

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime


class Copying:
    """Copies of modules for one reading."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        namespace = runtime.modules.module.namespace
        namespace["__deepcopy__"] = Native(lambda module, memo=None: self.deep(module, memo), "__deepcopy__", lazy=True)
        namespace["__copy__"] = Native(self.shallow, "__copy__", lazy=True)

    def deep(self, value: Any, memo: dict[int, Any] | None = None) -> Any:
        """A copy with its own tensors."""
        return Copier(self.runtime.modules, memo=memo).value(value)

    def shallow(self, module: ModuleInstance) -> ModuleInstance:
        """A copy with its own tables and the same tensors."""
        made = self.runtime.modules.make(module.cls)
        made.fields, made.modules = dict(module.fields), dict(module.modules)
        made.parameters, made.buffers = dict(module.parameters), dict(module.buffers)
        made.non_persistent = set(module.non_persistent)
        return made

    def hooks(self) -> dict[str, Callable[..., Any]]:
        """What the interpreter's copy module asks; MISSING for values that it copies itself."""
        return {
            "copy": lambda value: self.shallow(value) if isinstance(value, ModuleInstance) else MISSING,
            "deepcopy": lambda value, memo: self.deep(value, memo) if isinstance(value, (ModuleInstance, Tensor)) else MISSING,
        }
