"""A built module's parameters, buffers and modules by name, as a Model."""

from math import prod
from typing import TYPE_CHECKING

from weighbridge.base.dtypes import DType
from weighbridge.model import Buffer, Hole, Model, Module, Parameter
from weighbridge.phantom import Tensor
from weighbridge.reading import configs
from weighbridge.reading.glue.module_instance import ModuleInstance, named_buffers, named_parameters, walk
from weighbridge.reading.glue.runtime import Runtime

if TYPE_CHECKING:
    from weighbridge.reading.configs import Chosen
    from weighbridge.reading.reader import Request


def parameters_of(root: ModuleInstance) -> tuple[Parameter, ...]:
    """Every name of every parameter; the later names of a shared tensor point at its first."""
    first: dict[int, str] = {}
    found = []
    for name, tensor in named_parameters(root, once=False):
        tied = first.setdefault(id(tensor), name)
        found.append(Parameter(name, tensor.shape, tensor.dtype, tied if tied != name else None, tensor.requires_grad))
    return tuple(found)


def buffers_of(root: ModuleInstance) -> tuple[Buffer, ...]:
    """Every buffer; one that reading could not work out has no shape."""
    return tuple(
        Buffer(name, value.shape, value.dtype, persistent) if isinstance(value, Tensor) else Buffer(name, None, None, persistent)
        for name, value, persistent in named_buffers(root)
    )


def modules_of(root: ModuleInstance) -> tuple[Module, ...]:
    """Every module with the unique parameters it holds."""
    listed = list(walk(root, seen=set()))
    counted: set[int] = set()
    own: dict[int, int] = {}
    for _, module in listed:
        size = 0
        for tensor in module.parameters.values():
            if tensor is not None and id(tensor) not in counted:
                counted.add(id(tensor))
                size += prod(tensor.shape)
        own[id(module)] = size
    sizes: dict[int, int] = {}
    for _, module in reversed(listed):
        below = {id(child) for child in module.modules.values() if child is not None} if module.modules else ()
        sizes[id(module)] = own[id(module)] + sum(sizes.get(child, 0) for child in below)
    return tuple(Module(path, module.cls.name, own[id(module)], sizes[id(module)]) for path, module in listed)


def describe(request: "Request", runtime: Runtime, chosen: "Chosen", root: ModuleInstance) -> Model:
    """The finished model."""
    dtype: DType | None = configs.config_dtype(runtime.library, chosen.config)
    return Model(
        title=request.title,
        model_type=chosen.model_type,
        architecture=chosen.cls.name,
        parameters=parameters_of(root),
        buffers=buffers_of(root),
        modules=modules_of(root),
        config_values=configs.plain_values(chosen.config),
        config_dtype=dtype,
        files_read=tuple(runtime.library.sources.read),
        defaulted=tuple(sorted(set(configs.defaulted_keys(request.config, chosen.config)))),
        unread=tuple(sorted(set(configs.unread_keys(request.config, chosen.config)))),
        notes=tuple(f"{file}:{line}: {text}" if file else text for file, line, text in runtime.machine.notes),
        holes=tuple(Hole(f"{hole.owner}.{hole.name}", hole.why, *hole.place) for hole in runtime.modules.ledger.holes),
        custom_code=chosen.custom,
        transformers_version=runtime.library.sources.transformers.version,
        config=chosen.config,
        root=root,
        machine=runtime.machine,
        runtime=runtime,
    )
