"""Session: everything that one simulated device knows while code runs on it. No global state; the current one is a context variable."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from weighbridge.base.dtypes import BFLOAT16, FLOAT32, DType

if TYPE_CHECKING:
    from weighbridge.phantom.checkpoint import Region
    from weighbridge.phantom.tensor import Tensor


class Where(NamedTuple):
    """A place in a step: phase (forward, backward ...), module path and operation."""

    phase: str
    module: str
    operation: str


class Recorder:
    """The events of one device: (storage id, bytes, where), positive when allocated and negative when freed."""

    __slots__ = ("events", "live_bytes", "next_id", "open", "where")

    def __init__(self) -> None:
        self.events: list[tuple[int, int, Where]] = []
        self.next_id = 0
        self.live_bytes = 0
        self.open = True
        self.where = Where("", "", "")


class Session:
    """One simulated device and its modes.

    `capability` is the CUDA compute capability that decides kernels; `autocast` the low-precision type or None; `target` the tensor
    that an operation running in place writes to and `original` what it was before; `costs` maps (kind, dtype name, FLOPs, bytes
    moved) to how often such an operation ran.
    """

    def __init__(self, capability: tuple[int, int] = (8, 0), *, autocast: DType | None = None, training: bool = True) -> None:
        self.capability = capability
        self.recorder = Recorder()
        self.autocast = autocast
        self.autocast_dtype = autocast or BFLOAT16
        self.cast_cache: dict[int, tuple[Tensor, Tensor]] = {}
        self.training = training
        self.grad_enabled = True
        self.default_dtype = FLOAT32
        self.sequence = 0
        self.regions: list[Region | None] = []
        self.costs: dict[tuple[str, str, int, int], int] = {}
        self.flops = 0
        self.assumptions: list[str] = []
        self.target: Tensor | None = None
        self.original: Tensor | None = None
        self._phase = ""
        self._modules: list[str] = []

    @property
    def phase(self) -> str:
        """The part of the step that runs now: weights, state, inputs, forward, recompute, backward, clip, optimizer."""
        return self._phase

    @phase.setter
    def phase(self, value: str) -> None:
        self._phase = value
        self.recorder.where = Where(value, self.module_path, "")

    @property
    def module_path(self) -> str:
        """The module whose forward runs now, or an empty string."""
        return self._modules[-1] if self._modules else ""

    def enter_module(self, path: str) -> None:
        """Record what follows under `path`."""
        self._modules.append(path)
        self.recorder.where = Where(self._phase, path, "")

    def leave_module(self) -> None:
        """Return to the calling module."""
        self._modules.pop()
        self.recorder.where = Where(self._phase, self.module_path, "")

    def operate(self, name: str) -> None:
        """Record what follows under operation `name` of the current module."""
        where = self.recorder.where
        if where.operation != name:
            self.recorder.where = Where(where.phase, where.module, name)

    def spend(self, kind: str, dtype: str, flops: int, bytes_moved: int) -> None:
        """Add the cost of one operation."""
        self.flops += flops
        key = (kind, dtype, flops, bytes_moved)
        self.costs[key] = self.costs.get(key, 0) + 1

    def assume(self, text: str) -> None:
        """Note once what was assumed about data that a phantom does not have."""
        if text not in self.assumptions:
            self.assumptions.append(text)

    def close(self) -> None:
        """Record nothing more: storages that outlive the session die unseen."""
        self.recorder.open = False

    @contextmanager
    def activate(self) -> Iterator["Session"]:
        """Make this the current session."""
        token = _CURRENT.set(self)
        try:
            yield self
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def without_grad(self) -> Iterator[None]:
        """Run without recording the tape."""
        before, self.grad_enabled = self.grad_enabled, False
        try:
            yield
        finally:
            self.grad_enabled = before

    @contextmanager
    def under_autocast(self, dtype: DType | None) -> Iterator[None]:
        """Autocast to `dtype` (None: off). The cache of cast weights lives until the outermost context ends."""
        before, self.autocast = self.autocast, dtype
        outermost = before is None and not self.cast_cache
        try:
            yield
        finally:
            self.autocast = before
            if outermost:
                self.cast_cache.clear()


_CURRENT: ContextVar[Session] = ContextVar("weighbridge_session")


def current() -> Session:
    """The session that code runs in; one that records nothing is made where there is none."""
    session = _CURRENT.get(None)
    if session is None:
        session = Session()
        session.close()
        _CURRENT.set(session)
    return session
