"""torch.nn's Module and containers, natively: registration, iteration, and making many alike modules from one template.

The one place where a module is called is `ModuleLibrary.call`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from weighbridge.phantom import Tensor
from weighbridge.reading.glue.module_instance import LEDGER, Ledger, ModuleInstance, named_buffers, named_parameters, walk
from weighbridge.reading.glue.templates import Templates
from weighbridge.reading.python import Class, Function, Machine, Native, Unknown

PARAMETER_STEPS: Final = 10
MODULE_STEPS: Final = 20
LIBRARY: Final = "?library"
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


# Containers. A list's modules are named by their index.


def _append(machine: Machine, module: ModuleInstance, child: Any) -> ModuleInstance:
    module.put_module(machine, str(len(module.modules)), child)
    return module


def _extend(machine: Machine, module: ModuleInstance, children: Any) -> ModuleInstance:
    for child in machine.iterate(children):
        machine.tick(1)
        _append(machine, module, child)
    return module


def _init_list(machine: Machine, module: ModuleInstance, modules: Any = None) -> None:
    if modules is not None:
        _extend(machine, module, modules)


def _init_sequential(machine: Machine, module: ModuleInstance, *parts: Any) -> None:
    if len(parts) == 1 and isinstance(parts[0], dict):
        _update_modules(machine, module, parts[0])
    elif len(parts) == 1 and type(parts[0]) is Unknown:
        module.hole(machine, "0", parts[0])
    else:
        _extend(machine, module, list(parts))


def _keys(module: ModuleInstance) -> list[str]:
    return list(module.modules)


def _get(machine: Machine, module: ModuleInstance, key: Any) -> Any:
    if isinstance(key, slice):
        return _rebuilt(machine, module, [module.modules[name] for name in _keys(module)[key]])
    if isinstance(key, str):
        return module.modules[key]
    return module.modules[_keys(module)[int(machine.number(key) if not isinstance(key, int) else key)]]


def _rebuilt(machine: Machine, module: ModuleInstance, children: list[Any]) -> ModuleInstance:
    library: ModuleLibrary = module.cls.find(LIBRARY)
    made = library.make(library.classes["Sequential" if module.cls.subclass_of(library.classes["Sequential"]) else "ModuleList"])
    for index, child in enumerate(children):
        made.modules[str(index)] = child
    return made


def _renumber(module: ModuleInstance, children: list[Any]) -> None:
    module.modules.clear()
    module.modules.update((str(index), child) for index, child in enumerate(children))


def _set(machine: Machine, module: ModuleInstance, key: Any, child: Any) -> None:
    module.put_module(machine, key if isinstance(key, str) else _keys(module)[key], child)


def _delete(machine: Machine, module: ModuleInstance, key: Any) -> None:
    children = list(module.modules.values())
    del children[key]
    _renumber(module, children)
    machine.mutations += 1


def _insert(machine: Machine, module: ModuleInstance, index: int, child: Any) -> None:
    children = list(module.modules.values())
    children.insert(index, child)
    _renumber(module, children)


def _pop(machine: Machine, module: ModuleInstance, key: Any = -1) -> Any:
    child = _get(machine, module, key)
    if isinstance(key, str):
        del module.modules[key]
    else:
        _delete(machine, module, key)
    return child


def _run(machine: Machine, module: ModuleInstance, input: Any) -> Any:
    for child in list(module.modules.values()):
        machine.tick(1)
        args = [input]
        del input
        input = machine.call(child, args)
    return input


def _update_modules(machine: Machine, module: ModuleInstance, modules: Any) -> None:
    pairs = (
        modules.items()
        if isinstance(modules, dict)
        else modules.modules.items()
        if isinstance(modules, ModuleInstance)
        else machine.iterate(modules)
    )
    for key, child in pairs:
        module.put_module(machine, key, child)


def _init_dict(machine: Machine, module: ModuleInstance, modules: Any = None) -> None:
    if modules is not None:
        _update_modules(machine, module, modules)


def _as_parameter(machine: Machine, module: ModuleInstance, name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        module.put_parameter(name, value if value.is_parameter else as_parameter(value))
    elif value is None:
        module.put_parameter(name, None)
    else:
        module.store(machine, name, value)


def as_parameter(data: Tensor, requires_grad: bool = True) -> Tensor:
    """A parameter over the same storage."""
    made = Tensor(data.shape, data.dtype, data.storage, data.stride)
    made.is_parameter = True
    made.requires_grad = requires_grad
    return made


def _init_parameters(machine: Machine, module: ModuleInstance, values: Any = None) -> None:
    if values is not None:
        _extend_parameters(machine, module, values)


def _append_parameter(machine: Machine, module: ModuleInstance, value: Any) -> ModuleInstance:
    _as_parameter(machine, module, str(len(module.parameters)), value)
    return module


def _extend_parameters(machine: Machine, module: ModuleInstance, values: Any) -> ModuleInstance:
    for value in machine.iterate(values):
        machine.tick(1)
        _append_parameter(machine, module, value)
    return module


def _get_parameter_at(machine: Machine, module: ModuleInstance, key: Any) -> Any:
    if isinstance(key, slice):
        return list(module.parameters.values())[key]
    return module.parameters[list(module.parameters)[key]]


def _update_parameters(machine: Machine, module: ModuleInstance, values: Any) -> None:
    for key, value in values.items() if isinstance(values, dict) else machine.iterate(values):
        _as_parameter(machine, module, key, value)


def _init_parameter_dict(machine: Machine, module: ModuleInstance, values: Any = None) -> None:
    if values is not None:
        _update_parameters(machine, module, values)


def _concatenated(machine: Machine, module: ModuleInstance, other: Any) -> ModuleInstance:
    return _rebuilt(machine, module, [*module.modules.values(), *machine.iterate(other)])


LIST_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "__getitem__": _get,
    "__setitem__": _set,
    "__delitem__": _delete,
    "__len__": lambda machine, module: len(module.modules),
    "__iter__": lambda machine, module: iter(list(module.modules.values())),
    "__contains__": lambda machine, module, item: any(child is item for child in module.modules.values()),
    "__add__": _concatenated,
    "__iadd__": _extend,
}
CONTAINERS: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "ModuleList": {"__init__": _init_list, **LIST_METHODS},
    "Sequential": {"__init__": _init_sequential, "forward": _run, **LIST_METHODS},
    "ModuleDict": {
        "__init__": _init_dict,
        "update": _update_modules,
        "__getitem__": lambda machine, module, key: module.modules[key],
        "__setitem__": add_module,
        "__delitem__": lambda machine, module, key: module.remove(key),
        "__contains__": lambda machine, module, key: key in module.modules,
        "__len__": lambda machine, module: len(module.modules),
        "__iter__": lambda machine, module: iter(list(module.modules)),
        "keys": lambda machine, module: list(module.modules),
        "values": lambda machine, module: list(module.modules.values()),
        "items": lambda machine, module: list(module.modules.items()),
        "pop": lambda machine, module, key: module.modules.pop(key),
        "clear": lambda machine, module: module.modules.clear(),
        "get": lambda machine, module, key, default=None: module.modules.get(key, default),
    },
    "ParameterList": {
        "__init__": _init_parameters,
        "append": _append_parameter,
        "extend": _extend_parameters,
        "__getitem__": _get_parameter_at,
        "__setitem__": lambda machine, module, key, value: _as_parameter(machine, module, list(module.parameters)[key], value),
        "__len__": lambda machine, module: len(module.parameters),
        "__iter__": lambda machine, module: iter(list(module.parameters.values())),
        "__iadd__": _extend_parameters,
    },
    "ParameterDict": {
        "__init__": _init_parameter_dict,
        "update": _update_parameters,
        "__getitem__": lambda machine, module, key: module.parameters[key],
        "__setitem__": _as_parameter,
        "__contains__": lambda machine, module, key: key in module.parameters,
        "__len__": lambda machine, module: len(module.parameters),
        "__iter__": lambda machine, module: iter(list(module.parameters)),
        "keys": lambda machine, module: list(module.parameters),
        "values": lambda machine, module: list(module.parameters.values()),
        "items": lambda machine, module: list(module.parameters.items()),
    },
}
