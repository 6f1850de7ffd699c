"""torch.nn's containers of modules and of parameters, natively. A list's members are named by their index."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.phantom import Tensor
from weighbridge.reading.glue.module_instance import ModuleInstance
from weighbridge.reading.python import Machine, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.modules import ModuleLibrary

LIBRARY: Final = "?library"
"""Where a container's class keeps the library that it belongs to."""


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
        "__setitem__": lambda machine, module, name, child=None: module.put_module(machine, name, child),
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
