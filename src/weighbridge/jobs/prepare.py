"""A read model made ready for one simulated run: weights on the device in the job's precision, modes, implementations, inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weighbridge.base.dtypes import FLOAT32, DType
from weighbridge.base.errors import CannotTell
from weighbridge.jobs.job import Job
from weighbridge.model import Model
from weighbridge.phantom import Storage, Tensor
from weighbridge.reading.glue.config_classes import ConfigInstance
from weighbridge.reading.glue.forward_transformers import unwrapped
from weighbridge.reading.glue.module_instance import ModuleInstance, named_buffers, named_parameters, walk
from weighbridge.reading.inputs import Argument, InputFacts, Literal, default_inputs
from weighbridge.reading.python import Function

FLASH: Final = "flash_attention_2"
EXPERTS: Final = "grouped_mm"
NESTING: Final = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """How a tensor stood when the model was read; tensors of one `group` share a storage of so many elements."""

    tensor: Tensor
    dtype: DType
    trainable: bool
    group: int
    elements: int

    @classmethod
    def of(cls, tensor: Tensor, *, trainable: bool | None = None) -> "Origin":
        """The tensor as it stands now."""
        elements = tensor.storage.nbytes // tensor.dtype.itemsize
        return cls(tensor, tensor.dtype, tensor.requires_grad if trainable is None else trainable, id(tensor.storage), elements)


def origins(model: Model) -> tuple[Origin, ...]:
    """Every tensor that the model holds, once: parameters, buffers, and tensors kept as plain attributes."""
    seen: set[int] = set()
    found: list[Origin] = []
    for tensor in _tensors(model.root):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.append(Origin.of(tensor))
    return tuple(found)


def _tensors(root: ModuleInstance) -> Iterator[Tensor]:
    yield from (tensor for _, tensor in named_parameters(root))
    yield from (value for _, value, _ in named_buffers(root) if isinstance(value, Tensor))
    for _, module in walk(root, seen=set()):
        for value in list(module.fields.values()):
            yield from _held(value, 0)


def _held(value: Any, depth: int) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth < NESTING and isinstance(value, list | tuple):
        for part in value:
            yield from _held(part, depth + 1)
    elif depth < NESTING and isinstance(value, dict):
        for part in value.values():
            yield from _held(part, depth + 1)


def place_weights(kept: tuple[Origin, ...], weights: DType, fixed: frozenset[int] = frozenset()) -> None:
    """Give every tensor of the model a storage of its own on the current session's device, in the job's precision.

    Parameters are cast as `from_pretrained(dtype=...)` casts them; a buffer only where its type was torch's default when it was made.
    Tensors whose id is in `fixed` (adapters) keep the type they were made in.
    """
    storages: dict[int, Storage] = {}
    for origin in kept:
        tensor = origin.tensor
        floating = origin.dtype.kind == 2
        follows = floating and (tensor.is_parameter or (tensor.default_dtype and origin.dtype.bits <= FLOAT32.bits))
        tensor.dtype = weights if follows and id(tensor) not in fixed else origin.dtype
        if origin.group not in storages:
            storages[origin.group] = Storage(origin.elements * tensor.dtype.itemsize)
        tensor.storage = storages[origin.group]
        tensor.grad, tensor.node, tensor.is_leaf, tensor.output_index = None, None, True, 0


def choose_attention(model: Model, attention: str) -> str:
    """Set the attention implementation on every part of the model as transformers would; gives what the main part got."""
    machine = model.machine
    chosen = attention
    for _, module in walk(model.root, seen=set()):
        config = module.fields.get("config")
        if not isinstance(config, ConfigInstance):
            continue
        wanted = {"flash": FLASH}.get(attention, attention)
        supports = machine.getattr(module, "_supports_sdpa", None)
        if supports is None:  # a layer that keeps its model's config: the model has decided
            continue
        flash = machine.getattr(module, "_supports_flash_attn", None) or machine.getattr(module, "_supports_flash_attn_2", None)
        if wanted == "sdpa" and supports is False:
            wanted = "eager"
        if wanted == FLASH and flash is False:
            raise CannotTell("flash attention", f"{module.cls.name} does not support it", hint="use --attention sdpa")
        config.fields["_attn_implementation_internal"] = wanted
        config.fields["_experts_implementation_internal"] = EXPERTS
        if module is model.root:
            chosen = wanted
    return chosen


def set_training(root: ModuleInstance, training: bool) -> None:
    """train() or eval() on every module."""
    for _, module in walk(root, seen=set()):
        module.fields["training"] = training


def input_facts(model: Model) -> InputFacts:
    """What decides the inputs: the config as plain data and forward's signature."""
    machine = model.machine
    forward = unwrapped(model.root.cls.find("forward"))
    if not isinstance(forward, Function):
        raise CannotTell(f"{model.architecture}.forward", "the class has none")
    code = forward.code
    names = [*code.positional[1:], *code.keyword_only]
    required = code.positional[1 : len(code.positional) - len(forward.defaults)]
    main = machine.getattr(model.root, "main_input_name", "input_ids")
    return InputFacts(
        config=plain_config(model.config),
        model_type=model.model_type,
        architecture=model.architecture,
        main_input_name=main if isinstance(main, str) else "input_ids",
        parameters=tuple(names),
        required=tuple(required),
    )


def plain_config(config: Any, depth: int = 0) -> Mapping[str, Any]:
    """A configuration object as nested mappings."""
    values: dict[str, Any] = {}
    for name, value in config.fields.items():
        if isinstance(value, ConfigInstance):
            values[name] = plain_config(value, depth + 1) if depth < NESTING else {}
        elif isinstance(value, str | int | float | bool | list | tuple | dict) or value is None:
            values[name] = value
    aliases = config.cls.find("attribute_map")
    if isinstance(aliases, dict):
        values.update({name: values[target] for name, target in aliases.items() if isinstance(target, str) and target in values})
    return values


def call_arguments(model: Model, job: Job, batch: int, seq_tokens: int, *, labels: bool, floating: DType) -> dict[str, Argument]:
    """The arguments of one call, by name."""
    inputs = default_inputs(input_facts(model), batch, seq_tokens, labels=labels, floating=floating)
    if job.padded and "input_ids" in inputs and "attention_mask" in input_facts(model).parameters:
        spec = inputs["input_ids"]
        if not isinstance(spec, Literal):
            rows, tokens = spec.shape[0], spec.shape[-1]
            runs = ((0, 1), (1, rows * tokens - 1)) if rows * tokens > 1 else ((1, 1),)
            inputs = {**inputs, "attention_mask": type(spec)(spec.shape, spec.dtype, runs, "one token of padding")}
    return inputs


def made(inputs: Mapping[str, Argument]) -> dict[str, Any]:
    """The arguments as phantoms on the device."""
    values: dict[str, Any] = {}
    for name, argument in inputs.items():
        if isinstance(argument, Literal):
            values[name] = argument.value
            continue
        array = argument.array()
        known = None if array is None or argument.dtype.kind == 2 else np.asarray(array)
        values[name] = Tensor(argument.shape, argument.dtype, value=known)
    return values
