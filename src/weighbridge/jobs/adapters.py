"""LoRA as PEFT applies it: which modules are wrapped, in what dtype, and fused experts through their parameters.

Facts of peft 0.21: `all-linear` means every Linear and Conv1D but the output embeddings; adapters of a half-precision base are kept in
float32; of fused experts, whose gate and up projections are one tensor, the rank is doubled there.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge.base.dtypes import BY_NAME, FLOAT32, DType
from weighbridge.base.errors import UsageError
from weighbridge.jobs.job import Job
from weighbridge.jobs.prepare import Origin, origins
from weighbridge.model import Model
from weighbridge.phantom import Session, Tensor
from weighbridge.reading.glue.module_instance import ModuleInstance, named_parameters, walk

ALL_LINEAR: Final = "all-linear"
FUSED: Final = (("down_proj", 1), ("gate_up_proj", 2))
"""Expert parameters of three dimensions and how many old projections each fuses, in the order PEFT wraps them."""
HEADS: Final = frozenset({"classifier", "score"})


@dataclass(frozen=True, slots=True)
class Wrap:
    """One module replaced: where it hangs, what hung there, and what hangs there instead."""

    parent: ModuleInstance
    name: str
    original: ModuleInstance
    wrapper: ModuleInstance


@dataclass(frozen=True, slots=True)
class Adapted:
    """A model's wrappers, made once, and all its tensors with them."""

    wraps: tuple[Wrap, ...]
    kept: tuple[Origin, ...]


@contextmanager
def applied(model: Model, job: Job) -> Iterator[tuple[Origin, ...]]:
    """The model as the job trains it: with adapters in place for `lora`, as it is for `full`. Gives its tensors."""
    if job.method != "lora":
        yield _plain(model)
        return
    adapted = _adapted(model, job)
    for wrap in adapted.wraps:
        wrap.parent.modules[wrap.name] = wrap.wrapper
    try:
        yield adapted.kept
    finally:
        for wrap in adapted.wraps:
            wrap.parent.modules[wrap.name] = wrap.original


def _plain(model: Model) -> tuple[Origin, ...]:
    kept: dict[Any, Any] = model.runtime.kept
    if "plain" not in kept:
        kept["plain"] = origins(model)
    return kept["plain"]  # type: ignore[no-any-return] # the runtime keeps what jobs give it


def _adapted(model: Model, job: Job) -> Adapted:
    base = _plain(model)
    key = job.lora_rank, job.lora_targets, job.adapter_dtype
    kept: dict[Any, Any] = model.runtime.kept
    if key not in kept:
        session = Session()
        session.close()
        with session.activate():
            wraps = tuple(_linear_wraps(model, job)) + tuple(_expert_wraps(model, job))
        if not wraps:
            raise UsageError(
                f"--lora-targets {job.lora_targets[:60]!r} matches no linear layer", "name layers as in weigh structure, or all-linear"
            )
        frozen = tuple(replace(origin, trainable=False) for origin in base)
        kept[key] = Adapted(wraps, frozen + tuple(_new_tensors(wraps, {id(origin.tensor) for origin in base})))
    return kept[key]  # type: ignore[no-any-return] # likewise


def _new_tensors(wraps: tuple[Wrap, ...], known: set[int]) -> Iterator[Origin]:
    for wrap in wraps:
        for _, tensor in named_parameters(wrap.wrapper):
            if id(tensor) not in known:
                known.add(id(tensor))
                yield Origin.of(tensor, trainable=True)


def dtype_of(job: Job) -> DType:
    """What adapters are kept in: float32 where nothing was said, whatever the base is in."""
    if job.adapter_dtype is None:
        return FLOAT32
    if job.adapter_dtype not in BY_NAME:
        raise UsageError(f"--adapter-dtype {job.adapter_dtype[:30]!r} is not a dtype", "float32, bfloat16 or float16")
    return BY_NAME[job.adapter_dtype]


def _wanted(path: str, targets: str) -> bool:
    if targets == ALL_LINEAR:
        return True
    names = [name.strip() for name in targets.split(",") if name.strip()]
    return any(path == name or path.endswith(f".{name}") for name in names)


def _linear_wraps(model: Model, job: Job) -> Iterator[Wrap]:
    machine = model.machine
    library = model.runtime.library
    linear = model.runtime.torch.nn.get("Linear")
    conv = library.find("transformers.pytorch_utils", "Conv1D")
    wrapper_class = library.prelude("peft").lookup(machine, "LoraLinear")
    heads = _heads(model)
    dtype, scaling = dtype_of(job), 2.0
    for path, parent in list(walk(model.root, seen=set())):
        for name, child in list(parent.modules.items()):
            if child is None or id(child) in heads:
                continue
            full = f"{path}.{name}" if path else name
            is_linear = child.cls.subclass_of(linear)
            if not (is_linear or child.cls.subclass_of(conv)) or not _wanted(full, job.lora_targets):
                continue
            weight = child.parameters.get("weight")
            if not isinstance(weight, Tensor) or len(weight.shape) != 2:
                continue
            outputs, inputs = weight.shape if is_linear else weight.shape[::-1]
            wrapper = machine.call(wrapper_class, [child, inputs, outputs, job.lora_rank, scaling, dtype])
            _name_paths(wrapper, full)
            yield Wrap(parent, name, child, wrapper)


def _heads(model: Model) -> set[int]:
    """The output embeddings, or a sequence classifier's head."""
    machine = model.machine
    find = machine.getattr(model.root, "get_output_embeddings", None)
    found = machine.call(find, []) if find is not None else None
    if isinstance(found, ModuleInstance):
        return {id(found)}
    if re.search("ForSequenceClassification$", model.architecture):
        return {id(child) for name, child in model.root.modules.items() if name in HEADS and child is not None}
    return set()


def _expert_wraps(model: Model, job: Job) -> Iterator[Wrap]:
    """Fused experts, under all-linear only, as PEFT's conversion of old targets names them."""
    if job.lora_targets != ALL_LINEAR:
        return
    machine = model.machine
    wrapper_class = model.runtime.library.prelude("peft").lookup(machine, "LoraParameter")
    for path, parent in list(walk(model.root, seen=set())):
        for name, child in list(parent.modules.items()):
            if child is None or any(_rank_three(child, parameter) is None for parameter, _ in FUSED):
                continue
            if machine.getattr(child, "is_transposed", False) is True:
                continue
            wrapper = child
            for parameter, fused in FUSED:
                experts_shape = _rank_three(child, parameter)
                assert experts_shape is not None
                _, outputs, inputs = experts_shape
                arguments = [wrapper, child, parameter, inputs, outputs, job.lora_rank * fused, 2.0, True, dtype_of(job)]
                wrapper = machine.call(wrapper_class, arguments)
            _name_paths(wrapper, f"{path}.{name}" if path else name)
            yield Wrap(parent, name, child, wrapper)


def _rank_three(module: ModuleInstance, name: str) -> tuple[int, ...] | None:
    tensor = module.parameters.get(name)
    return tensor.shape if isinstance(tensor, Tensor) and len(tensor.shape) == 3 else None


def _name_paths(wrapper: ModuleInstance, path: str) -> None:
    """The new modules stand under the wrapped one's path; the wrapped one keeps its own."""
    for inner, module in walk(wrapper, seen=set()):
        if not module.path:
            module.path = f"{path}.{inner}" if inner else path
