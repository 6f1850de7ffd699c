"""torch.nn's Module, natively: registration, iteration, and making many alike modules from one template.

The one place where a module is called is `ModuleLibrary.call`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from weighbridge.phantom import Tensor
from weighbridge.reading.glue.containers import CONTAINERS, LIBRARY
from weighbridge.reading.glue.module_instance import LEDGER, Ledger, ModuleInstance, named_buffers, named_parameters, walk
from weighbridge.reading.glue.templates import Templates
from weighbridge.reading.python import Class, Function, Machine, Native, Unknown

PARAMETER_STEPS: Final = 10
MODULE_STEPS: Final = 20
SAME: Final = (
    "to", "half", "float", "double", "bfloat16", "cuda", "cpu", "to_empty", "type", "compile", "share_memory", "apply", "ipu", "xpu",
)  # fmt: skip
"""Methods that give the module back."""
NOTHING: Final = (
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook", "_register_state_dict_hook", "register_state_dict_pre_hook",
    "register_load_state_dict_post_hook", "register_full_backward_pre_hook", "zero_grad", "load_state_dict", "reset_parameters",
)  # fmt: skip
"""Methods without effect on what a module holds."""


def module_at(module: ModuleInstance, path: str, machine: Machine) -> Any:
    """The submodule a dotted path leads to; AttributeError where there is none."""
    found: Any = module
    for name in path.split(".") if path else []:
        found = machine.getattr(found, name)
    return found


class ModuleLibrary:
    """The native classes of one read."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ledger = Ledger()
        self.templates = Templates(self)
        self.call: Callable[[Machine, ModuleInstance, list[Any], dict[str, Any] | None], Any] = plain_call
        self.module = Class("Module", instance_type=ModuleInstance, module="torch.nn")
        self.module.constructor = self.construct
        self.classes: dict[str, Class] = {"Module": self.module}
        self._fill_module()
        for name, methods in CONTAINERS.items():
            self._container(name, methods)

    def make(self, cls: Class) -> ModuleInstance:
        """An empty module."""
        self.machine.tick(MODULE_STEPS)
        instance = cls.instance_type(cls)
        assert isinstance(instance, ModuleInstance)
        return instance

    def construct(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """cls(*args, **kwargs) for a module class."""
        if type(cls.find("__new__")) is Function:
            made = machine.call(cls.find("__new__"), [cls, *args], kwargs)
            if not isinstance(made, ModuleInstance) or made.cls is not cls:
                return made
            machine.call(machine.getattr(made, "__init__"), args, kwargs)
            return made
        return self.templates.build(cls, args, kwargs)

    def build(self, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> ModuleInstance:
        """Make one module and run its __init__."""
        module = self.make(cls)
        outer, self.ledger.building = self.ledger.building, module.number
        try:
            self.machine.call(cls.find("__init__"), [module, *args], kwargs)
        finally:
            self.ledger.building = outer
        return module

    def instance(self, name: str, *args: Any) -> ModuleInstance:
        """A new container."""
        made = self.machine.call(self.classes[name], list(args))
        assert isinstance(made, ModuleInstance)
        return made

    def _fill_module(self) -> None:
        namespace = self.module.namespace
        for name in SAME:
            namespace[name] = Native(lambda module, *_, **__: module, name, lazy=True)
        for name in NOTHING:
            namespace[name] = Native(lambda *_, **__: None, name, lazy=True)
        for name, method in MODULE_METHODS.items():
            namespace[name] = Native(method, name, lazy=True, wants_machine=True)
        namespace["__setattr__"] = Native(set_attribute, "__setattr__", lazy=True, raw=True)
        namespace["__call__"] = Native(
            lambda machine, args, kwargs: self.call(machine, args.pop(0), args, kwargs), "__call__", lazy=True, raw=True
        )
        namespace[LEDGER] = self.ledger
        namespace["training"] = True
        namespace["dump_patches"] = False
        namespace["call_super_init"] = False

    def _container(self, name: str, methods: dict[str, Callable[..., Any]]) -> None:
        cls = Class(name, [self.module], module="torch.nn")
        for method, function in methods.items():
            cls.namespace[method] = Native(function, method, lazy=True, wants_machine=True)
        cls.namespace[LIBRARY] = self
        self.classes[name] = cls


def set_attribute(machine: Machine, args: list[Any], _kwargs: Any) -> None:
    """module.name = value."""
    module, name, value = args
    if name == "__class__" and isinstance(value, Class):
        module.cls = value
        machine.mutations += 1
    else:
        module.store(machine, name, value)


def plain_call(machine: Machine, module: ModuleInstance, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    """Run forward(); forward-time glue puts hooks and records around it."""
    args.insert(0, module)
    return machine.call(module.cls.find("forward"), args, kwargs)


def no_forward(machine: Machine, module: ModuleInstance, *_: Any, **__: Any) -> Any:
    """A module without a forward of its own."""
    raise NotImplementedError(
        f'Module [{module.cls.name}] is missing the required "forward" function at {machine.place[0]}:{machine.place[1]}'
    )


def init_module(machine: Machine, module: ModuleInstance, *_: Any, **__: Any) -> None:
    """nn.Module.__init__: the tables stand already."""


def register_buffer(machine: Machine, module: ModuleInstance, name: str, tensor: Any = None, persistent: bool = True) -> None:
    """Register a buffer; an unknown one is kept as unknown."""
    if isinstance(tensor, ModuleInstance):
        raise TypeError(f"cannot assign 'Module' object to buffer '{name}'")
    module.put_buffer(name, tensor, persistent=bool(machine.truth(persistent)))


def register_parameter(machine: Machine, module: ModuleInstance, name: str, param: Any = None) -> None:
    """Register a parameter or its absence."""
    if type(param) is Unknown:
        module.hole(machine, name, param)
    elif param is not None and not (isinstance(param, Tensor) and param.is_parameter):
        raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}'")
    else:
        module.put_parameter(name, param)


def add_module(machine: Machine, module: ModuleInstance, name: str, child: Any = None) -> None:
    """Register a submodule."""
    module.put_module(machine, name, child)


def get_tensor(machine: Machine, module: ModuleInstance, path: str) -> Any:
    """A parameter or buffer by its path."""
    owner, _, name = path.rpartition(".")
    return machine.getattr(module_at(module, owner, machine), name)


def set_requires_grad(machine: Machine, module: ModuleInstance, requires_grad: Any = True) -> ModuleInstance:
    """Freeze or free every parameter."""
    wanted = machine.truth(requires_grad)
    for _, tensor in named_parameters(module):
        tensor.requires_grad = wanted
    return module


def set_training(machine: Machine, module: ModuleInstance, mode: Any = True) -> ModuleInstance:
    """train() and eval()."""
    wanted = machine.truth(mode)
    for _, part in walk(module, seen=set()):
        part.fields["training"] = wanted
    return module


def state_dict(machine: Machine, module: ModuleInstance, *_: Any, **__: Any) -> dict[str, Any]:
    """Parameters and persistent buffers by path."""
    tensors: dict[str, Any] = dict(named_parameters(module, once=False))
    tensors.update((name, value) for name, value, persistent in named_buffers(module, once=False) if persistent)
    return tensors


def _prefixed(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _named_modules(
    machine: Machine, module: ModuleInstance, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
) -> Iterator[Any]:
    return iter([(_prefixed(prefix, path), part) for path, part in walk(module, seen=set() if remove_duplicate else None)])


def _named_parameters(
    machine: Machine, module: ModuleInstance, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[Any]:
    if not recurse:
        return iter([(_prefixed(prefix, name), tensor) for name, tensor in module.parameters.items() if tensor is not None])
    return ((_prefixed(prefix, name), tensor) for name, tensor in named_parameters(module, once=remove_duplicate))


def _parameters(machine: Machine, module: ModuleInstance, recurse: bool = True) -> Iterator[Any]:
    return (tensor for _, tensor in _named_parameters(machine, module, recurse=recurse))


def _named_buffers(
    machine: Machine, module: ModuleInstance, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[Any]:
    if not recurse:
        return iter([(_prefixed(prefix, name), value) for name, value in module.buffers.items() if value is not None])
    return ((_prefixed(prefix, name), value) for name, value, _ in named_buffers(module, once=remove_duplicate))


MODULE_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "__init__": init_module,
    "forward": no_forward,
    "register_buffer": register_buffer,
    "register_parameter": register_parameter,
    "add_module": add_module,
    "register_module": add_module,
    "set_submodule": lambda machine, module, path, child, *_: module_at(module, path.rpartition(".")[0], machine).put_module(
        machine, path.rpartition(".")[2], child
    ),
    "get_submodule": lambda machine, module, path="": module_at(module, path, machine),
    "get_parameter": get_tensor,
    "get_buffer": get_tensor,
    "requires_grad_": set_requires_grad,
    "train": set_training,
    "eval": lambda machine, module: set_training(machine, module, mode=False),
    "state_dict": state_dict,
    "named_parameters": _named_parameters,
    "parameters": _parameters,
    "named_modules": _named_modules,
    "modules": lambda machine, module, *_: iter([part for _, part in walk(module, seen=set())]),
    "named_children": lambda machine, module: iter([(name, child) for name, child in module.modules.items() if child is not None]),
    "children": lambda machine, module: iter([child for child in module.modules.values() if child is not None]),
    "named_buffers": _named_buffers,
    "buffers": lambda machine, module, recurse=True: (value for _, value in _named_buffers(machine, module, recurse=recurse)),
    "extra_repr": lambda machine, module: "",
    "_get_name": lambda machine, module: module.cls.name,
}
