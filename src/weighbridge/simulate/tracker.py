"""A dispatch mode that sees every tensor of a step being made and freed, and plays it through the caching allocator."""

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from weighbridge.simulate.allocator import Block, CachingAllocator
from weighbridge.simulate.kernels import MISSING, TEMPORARIES
from weighbridge.simulate.values import KnownValues, known_shapes

aten = torch.ops.aten
PRIM_DEVICE = torch.ops.prim.device.default
sequence_number = torch._C._autograd._get_sequence_nr  # noqa: SLF001  # the only door
ITEM_OPERATIONS = (aten._local_scalar_dense.default, aten.is_nonzero.default)  # noqa: SLF001  # torch's own name
# References to a gradient that the engine alone holds, as a dispatch mode sees it; found by comparing with the profiler's add_ counts.
ENGINE_TENSOR_REFERENCES = 4
ENGINE_STORAGE_REFERENCES = 2


@dataclass(slots=True, eq=False)
class Allocation:
    """One storage on the device, from `born` to `freed` (None while it lives); `role` says what it turned out to be."""

    number: int
    nbytes: int
    operation: str
    phase: str
    module: str
    shape: tuple[int, ...]
    dtype: str
    born: int
    block: Block | None
    node: str = ""
    role: str = ""
    freed: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation (positive) or a free (negative) of a storage, and where it happened."""

    storage: int
    delta_bytes: int
    phase: str
    module: str
    operation: str


class Tracker(TorchDispatchMode):
    """Allocations by storage. Set `phase` as the step goes on; `module_names` keeps the stack of modules."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no annotation here
        self.allocator = CachingAllocator()
        self.values = KnownValues()
        self.phase = "build"
        self.modules: list[str] = []
        self.allocations: list[Allocation] = []
        self.live: dict[int, Allocation] = {}
        self.events: list[Event] = []
        self.peak = (-1, 0)  # (allocated bytes, clock) of the first highest moment
        self.operations = 0
        self._clock = 0
        self._by_storage: dict[int, tuple[weakref.ref[Any], Allocation]] = {}
        self._module_of_sequence: dict[int, str] = {}
        self._shapes = known_shapes(self.values)

    def start_measuring(self) -> None:
        """Forget the peak so far: building a model is not part of a step."""
        self.allocator.reset_peak()
        self.peak = (-1, self._clock)
        self.events.clear()

    def allocation_of(self, tensor: Tensor) -> Allocation | None:
        """The allocation under a tensor, None if it is not on the device."""
        entry = self._by_storage.get(tensor.untyped_storage()._cdata)  # noqa: SLF001  # a storage has no other name
        return entry[1] if entry else None

    def label(self, tensor: Any, role: str) -> None:
        """Say what a tensor's storage is."""
        if isinstance(tensor, Tensor) and (found := self.allocation_of(tensor)) is not None and not found.role:
            found.role = role

    def allocate(self, nbytes: int, operation: str, tensor: Tensor | None = None, role: str = "") -> Allocation:
        """Take a block now; `free` gives it back."""
        self._clock += 1
        module, node = self.modules[-1] if self.modules else "", ""
        if self.phase == "backward" and (current := torch._C._current_autograd_node()) is not None:  # noqa: SLF001  # the only door
            module, node = self._module_of_sequence.get(current._sequence_nr(), ""), current.name()  # noqa: SLF001  # as above
        shape, dtype = (tuple(tensor.shape), str(tensor.dtype)[6:]) if tensor is not None else ((nbytes,), "uint8")
        made = Allocation(
            len(self.allocations),
            nbytes,
            operation,
            self.phase,
            module,
            shape,
            dtype,
            self._clock,
            self.allocator.malloc(nbytes),
            node,
            role,
        )
        self.allocations.append(made)
        self.live[made.number] = made
        self.events.append(Event(made.number, nbytes, self.phase, module, operation))
        if self.allocator.allocated > self.peak[0]:
            self.peak = (self.allocator.allocated, self._clock)
        return made

    def free(self, allocation: Allocation) -> None:
        """Give the block back, once."""
        if allocation.freed is not None:
            return
        self._clock += 1
        allocation.freed = self._clock
        self.allocator.free(allocation.block)
        self.live.pop(allocation.number, None)
        self.events.append(
            Event(allocation.number, -allocation.nbytes, self.phase, self.modules[-1] if self.modules else "", allocation.operation)
        )

    def track(self, tensor: Tensor, operation: str) -> Allocation | None:
        """Notice a tensor that an operation returned: a new storage is an allocation that ends with it."""
        if tensor.device.type != "cuda":
            return None
        storage = tensor.untyped_storage()
        key = storage._cdata  # noqa: SLF001  # a storage has no other name
        entry = self._by_storage.get(key)
        if entry is not None and entry[0]() is storage:
            if entry[1].nbytes == storage.nbytes():
                return entry[1]
            self.free(entry[1])  # resized in place
        made = self.allocate(storage.nbytes(), operation, tensor)

        def ended(_reference: Any) -> None:
            self.free(made)
            current = self._by_storage.get(key)
            if current is not None and current[1] is made:
                del self._by_storage[key]

        self._by_storage[key] = (weakref.ref(storage, ended), made)
        return made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        torch._C._set_only_lift_cpu_tensors(True)  # noqa: SLF001  # the fake mode says so to its own thread, autograd has another
        if func is PRIM_DEVICE:
            return func(*args, **kwargs)
        if func in ITEM_OPERATIONS and isinstance(args[0], FakeTensor):
            if self.values.of(args[0]) is None and args[0].device.type == "cpu":
                with contextlib.suppress(DataDependentOutputException):
                    return func(*args, **kwargs)  # the fake mode follows constants on the CPU itself
            return self.values.answer(args[0], self.modules[-1] if self.modules else self.phase)
        if func is aten.equal.default:
            return True
        if self.phase != "backward" and self.modules:
            self._module_of_sequence.setdefault(sequence_number() - 1, self.modules[-1])
        name = str(func)
        temporaries = [self.allocate(n, f"inside {name}", role="temporary") for n in TEMPORARIES[func](args)] if func in TEMPORARIES else []
        out = self._run(func, args, kwargs)
        self.operations += 1
        self.values.follow(func, args, kwargs, out)
        for tensor in tree_flatten(out)[0] if not isinstance(out, Tensor) else (out,):
            if isinstance(tensor, Tensor):
                made = self.track(tensor, name)
                if made is not None and not made.role and func is aten._to_copy.default:  # noqa: SLF001  # torch's own name
                    self._label_cast(made, args[0])
        for temporary in temporaries:
            self.free(temporary)
        return out

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The operation as a GPU run would do it, where a dispatch mode or a missing kernel makes torch do otherwise."""
        if func in MISSING:
            return MISSING[func](*args, **kwargs)
        if func in self._shapes:
            out = self._shapes[func](*args, **kwargs)
            return func(*args, **kwargs) if out is None else out
        if func is aten.index.Tensor:
            args = (args[0], self._index_by_numbers(args[1]))
        if func is aten._grouped_mm.default and args[0].dtype != torch.bfloat16:  # noqa: SLF001  # torch's own name
            narrow = [x.to(torch.bfloat16) for x in args[:2]]  # the fake kernel knows bfloat16 only; CUDA runs the others too
            return func(*narrow, *args[2:], **kwargs).to(args[0].dtype)
        if self.phase == "backward" and not torch.is_grad_enabled():
            if func is aten.index_put.default:  # in place on a GPU, out of place for tensor subclasses
                aten.index_put_.default(*args, **kwargs)
                return args[0]
            if func is aten.add.Tensor and not kwargs and self._engine_alone_holds(args):
                aten.add_.Tensor(*args, **kwargs)  # gradients are summed in place where nobody else holds them
                return args[0]
        return func(*args, **kwargs)

    def _index_by_numbers(self, indices: Any) -> list[Any]:
        """Boolean masks as the row numbers they stand for, where their values are known."""
        out: list[Any] = []
        for index in indices:
            mask = index is not None and index.dtype in {torch.bool, torch.uint8} and isinstance(index, FakeTensor)
            numbers = self._shapes[aten.nonzero.default](index) if mask else None
            if numbers is None:
                out.append(index)
            else:
                self.track(numbers, "aten.nonzero.default")
                out += list(numbers.unbind(1))
        return out

    @staticmethod
    def _engine_alone_holds(args: Any) -> bool:
        held, other = args[0], args[1]
        if not isinstance(other, Tensor) or held.shape != other.shape or held.dtype != other.dtype:
            return False
        references = held._use_count()  # noqa: SLF001  # the only door
        storage = held.untyped_storage()
        storage_references = torch._C._storage_Use_Count(storage._cdata)  # noqa: SLF001  # the only door
        del storage
        dense = held.is_contiguous() or torch._prims_common.is_non_overlapping_and_dense_or_false(held)  # noqa: SLF001  # torch's own test
        return bool(dense) and references <= ENGINE_TENSOR_REFERENCES and storage_references <= ENGINE_STORAGE_REFERENCES

    def _label_cast(self, made: Allocation, source: Any) -> None:
        origin = self.allocation_of(source) if isinstance(source, Tensor) else None
        if origin is not None and origin.role == "weights" and made.dtype != origin.dtype:
            made.role = "weight casts"


@contextlib.contextmanager
def module_names(model: nn.Module, tracker: Tracker) -> Iterator[None]:
    """Keep `tracker.modules` to the path of the module whose forward runs."""
    names = {module: name or "<model>" for name, module in model.named_modules()}

    def before(module: nn.Module, _inputs: Any) -> None:
        tracker.modules.append(names.get(module, type(module).__name__))

    def after(_module: nn.Module, _inputs: Any, _output: Any) -> None:
        if tracker.modules:
            tracker.modules.pop()

    hooks = [register_module_forward_pre_hook(before), register_module_forward_hook(after, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
