"""The `torch` namespace: dtypes, classes, functions from the operations, and answers about the machine.

Layers and torch.nn's helpers are read from our own text; Module, Parameter and the containers are native.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.dtypes import ALL, BY_NAME, DType
from weighbridge.base.errors import CannotTell
from weighbridge.phantom import Tensor, current
from weighbridge.reading.glue.contexts import autocast_mode, grad_mode, inert_mode
from weighbridge.reading.glue.tensors import TENSOR_CLASSES, Device
from weighbridge.reading.python import MISSING, Class, ClassMethod, Machine, Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

VERSION: Final = "2.13.0"
METHOD_PREFIXES: Final = ("linalg", "fft", "special")
"""Submodules whose functions the operations hold as prefix_name."""
INERT: Final = frozenset({
    "strided", "sparse_coo", "per_tensor_affine",
    "SymInt", "SymBool",
    "SymFloat", "Generator", "layout", "memory_format", "Stream", "Event", "ScriptModule", "Graph", "fx", "export", "onnx",
    "profiler", "quantization",
    "futures", "package", "hub", "sparse", "nested", "func", "_C", "classes", "mtia", "xpu", "mps", "npu", "musa", "hpu", "mlu",
})  # fmt: skip
"""Names that are only mentioned while a model is built."""
MEMORY_FORMATS: Final = frozenset({"preserve_format", "contiguous_format", "channels_last", "channels_last_3d"})
"""Known to the operations by name alone."""
ANSWERS: Final[dict[str, Any]] = {
    "is_autocast_enabled": False, "is_autocast_cpu_enabled": False, "is_inference_mode_enabled": False,
    "are_deterministic_algorithms_enabled": False,
    "is_deterministic_algorithms_warn_only_enabled": False, "is_inference": False, "manual_seed": None, "seed": 0, "initial_seed": 0,
    "set_float32_matmul_precision": None, "get_float32_matmul_precision": "highest", "_assert": None, "_check": None,
    "_check_is_size": None,
    "_check_value": None, "set_printoptions": None, "use_deterministic_algorithms": None, "get_num_threads": 1, "set_num_threads": None,
    "set_default_device": None, "_is_functional_tensor": False, "is_vulkan_available": False, "get_rng_state": None, "set_rng_state": None,
}  # fmt: skip
CUDA_ANSWERS: Final[dict[str, Any]] = {
    "is_available": False, "device_count": 0, "current_device": 0, "is_bf16_supported": True, "get_device_capability": (8, 0),
    "synchronize": None,
    "empty_cache": None, "is_current_stream_capturing": False, "manual_seed": None, "manual_seed_all": None, "set_device": None,
    "is_initialized": False,
}  # fmt: skip
DISTRIBUTED_ANSWERS: Final[dict[str, Any]] = {"is_available": False, "is_initialized": False, "get_world_size": 1, "get_rank": 0}
COMPILER_ANSWERS: Final[dict[str, Any]] = {"is_compiling": False, "is_dynamo_compiling": False, "is_exporting": False}
JIT_ANSWERS: Final[dict[str, Any]] = {"is_tracing": False, "is_scripting": False}


def answers(name: str, table: dict[str, Any], fallback: Callable[[str], Any] | None = None) -> Namespace:
    """A namespace of functions with fixed results; whatever else is asked of it gives its argument back."""

    def other(attribute: str) -> Any:
        return MISSING if attribute.startswith("__") else passing(f"{name}.{attribute}")

    return Namespace(name, {key: constant(f"{name}.{key}", value) for key, value in table.items()}, fallback or other)


def constant(name: str, value: Any) -> Native:
    """A function of one answer."""
    return Native(lambda *_, **__: value, name, lazy=True)


def passing(name: str) -> Native:
    """A function or decorator that gives its first argument back; called with keywords alone, it gives such a decorator."""

    def give(first: Any = MISSING, *_: Any, **__: Any) -> Any:
        return Native(lambda function, *_, **__: function, name, lazy=True) if first is MISSING else first

    return Native(give, name, lazy=True)


class TorchApi:
    """torch for one reading: `torch` is the namespace, `modules` every submodule by its dotted name, `classes` its classes."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime, self.operations = runtime, runtime.operations
        self.classes = self._tensor_classes()
        self.functional = Namespace("torch.nn.functional", {}, self._functional)
        self.nn = Namespace("torch.nn", self._nn_entries(), self._layer)
        self.torch: Namespace = Namespace("torch", self._entries(), self._fallback)
        self.modules: dict[str, Namespace] = {"torch": self.torch, "torch.nn": self.nn, "torch.nn.functional": self.functional}
        self._submodules()

    # ------------------------------------------------------------------ classes
    def _tensor_classes(self) -> dict[str, Class]:
        tensor = Class("Tensor", module="torch")
        tensor.constructor = self._construct_tensor
        classes = {"Tensor": tensor}
        for name, constructor in (("Parameter", self._construct_parameter), ("Buffer", self._construct_buffer)):
            classes[name] = Class(name, [tensor], module="torch.nn.parameter")
            classes[name].constructor = constructor
        for name in TENSOR_CLASSES:
            classes[name] = Class(name, [tensor], module="torch")
        for cls in ("dtype", "device"):
            classes[cls] = Class(cls, module="torch")
        classes["device"].constructor = self._construct_device
        function = Class("Function", module="torch.autograd")
        function.namespace["apply"] = ClassMethod(Native(self._apply_function, "Function.apply", lazy=True, wants_machine=True))
        classes["Function"] = function
        return classes

    def _apply_function(self, machine: Machine, cls: Class, *_: Any, **__: Any) -> Any:
        return self.operations.unknown_operation(machine, f"{cls.name}.apply")

    def _construct_tensor(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        dtype = BY_NAME.get(TENSOR_CLASSES.get(cls.name, ""), None)
        given = args[0] if args else kwargs.get("data", ())
        if type(given) is Unknown:
            return machine.unknown(f"Tensor({given.why})")
        keywords = {} if dtype is None else {"dtype": dtype}
        if isinstance(given, int):
            return self.operations.apply("empty", *args, **keywords)
        return self.operations.apply("tensor", given, **keywords)

    def _construct_parameter(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        data = args[0] if args else kwargs.get("data")
        requires_grad = args[1] if len(args) > 1 else kwargs.get("requires_grad", True)
        machine.tick(1)
        if data is None:
            data = self.operations.apply("empty", 0)
        if isinstance(data, Tensor):
            made = Tensor(data.shape, data.dtype, data.storage, data.stride)
            made.default_dtype = data.default_dtype
            made.is_parameter = True
            made.requires_grad = machine.truth(requires_grad)
            return made
        why = data.why if type(data) is Unknown else f"it is made from {type(data).__name__}"
        file, line = machine.place
        raise CannotTell("the shape of a parameter", why, file=file, line=line)

    def _construct_buffer(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        data = args[0] if args else kwargs.get("data")
        persistent = args[1] if len(args) > 1 else kwargs.get("persistent", True)
        if not isinstance(data, Tensor):
            return machine.unknown(data.why if type(data) is Unknown else "an empty buffer")
        made = Tensor(data.shape, data.dtype, data.storage, data.stride, data.value)
        made.default_dtype = data.default_dtype
        made.is_buffer, made.persistent = True, machine.truth(persistent)
        return made

    def _construct_device(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        given = args[0] if args else kwargs.get("type", kwargs.get("device", "cuda"))
        if isinstance(given, Device):
            return given
        if isinstance(given, str):
            index = args[1] if len(args) > 1 else kwargs.get("index")
            return Device(given, index) if index is not None else Device.parse(given)
        return Device("cuda", given if isinstance(given, int) else None)

    # ------------------------------------------------------------------ torch.nn
    def _nn_entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = dict(self.runtime.modules.classes)
        entries.update(Parameter=self.classes["Parameter"], Buffer=self.classes["Buffer"], functional=self.functional)
        for name in ("UninitializedParameter", "UninitializedBuffer"):
            entries[name] = Unknown(f"torch.nn.{name}", "lib")
        return entries

    def _layer(self, name: str) -> Any:
        """A layer from our text, or a submodule of torch.nn."""
        if name.startswith("__"):
            return MISSING
        if f"torch.nn.{name}" in self.modules:
            return self.modules[f"torch.nn.{name}"]
        if self.runtime.library.has_prelude(f"torch_nn_{name}"):
            return self.runtime.library.load(f"torch.nn.{name}")
        found = self.runtime.library.prelude("torch_nn").get(self.runtime.machine, name)
        return Unknown(f"torch.nn.{name}", "lib") if found is MISSING else found

    def _functional(self, name: str) -> Any:
        own = f"functional.{name}"
        return MISSING if name.startswith("__") else self.operations.native(own if self.operations.has(own) else name, f"F.{name}")

    # ------------------------------------------------------------------ torch
    def _entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {dtype.name: dtype for dtype in ALL}
        entries.update(BY_NAME)
        entries.update({name: constant(f"torch.{name}", value) for name, value in ANSWERS.items()})
        entries.update({name: cls for name, cls in self.classes.items() if name not in {"Parameter", "Buffer", "Function"}})
        entries.update({name: Native(function, f"torch.{name}", lazy=True) for name, function in self._functions().items()})
        entries.update(
            nn=self.nn, Size=self.runtime.machine.builtins["tuple"], __version__=VERSION, pi=math.pi, inf=math.inf, nan=math.nan, e=math.e
        )
        entries.update(compile=passing("torch.compile"), newaxis=None)
        return entries

    def _functions(self) -> dict[str, Callable[..., Any]]:
        machine = self.runtime.machine
        return {
            "no_grad": lambda *args: grad_mode(machine, False, args),
            "enable_grad": lambda *args: grad_mode(machine, True, args),
            "inference_mode": lambda *args, **_: grad_mode(machine, False, [arg for arg in args if not isinstance(arg, bool)]),
            "set_grad_enabled": lambda mode: grad_mode(machine, machine.truth(mode), ()),
            "autocast": autocast_mode,
            "is_grad_enabled": lambda: current().grad_enabled,
            "is_tensor": lambda value: isinstance(value, Tensor),
            "is_storage": lambda value: False,
            "numel": lambda tensor: math.prod(tensor.shape),
            "get_default_dtype": lambda: current().default_dtype,
            "set_default_dtype": self._set_default_dtype,
            "set_default_tensor_type": lambda _: None,
            "get_autocast_dtype": lambda *_: current().autocast_dtype,
            "get_autocast_gpu_dtype": lambda *_: current().autocast_dtype,
            "finfo": lambda dtype=None, *_: finfo(dtype),
            "iinfo": lambda dtype=None, *_: iinfo(dtype),
            "load": lambda *_, **__: refuse("torch.load()", "reading a checkpoint while a model is built"),
        }

    def _set_default_dtype(self, dtype: Any) -> None:
        if isinstance(dtype, DType):
            current().default_dtype = dtype
            self.runtime.machine.mutations += 1

    def _fallback(self, name: str) -> Any:
        if name.startswith("__"):
            return MISSING
        if f"torch.{name}" in self.modules:
            return self.modules[f"torch.{name}"]
        if self.operations.has(name):
            return self.operations.native(name, f"torch.{name}")
        if self.runtime.library.has_prelude(f"torch_{name}"):
            return self.runtime.library.load(f"torch.{name}")
        if name in MEMORY_FORMATS:
            return name
        if name in INERT:
            return Unknown(f"torch.{name}", "stub", self.runtime.machine.place)
        return self.operations.native(name, f"torch.{name}")

    # ------------------------------------------------------------------ submodules
    def _submodules(self) -> None:
        modules = self.modules
        for prefix in METHOD_PREFIXES:
            modules[f"torch.{prefix}"] = Namespace(f"torch.{prefix}", {}, self._prefixed(prefix))
        modules["torch.cuda"] = answers("torch.cuda", CUDA_ANSWERS)
        modules["torch.distributed"] = answers(
            "torch.distributed", DISTRIBUTED_ANSWERS, lambda name: self._library_name("torch.distributed", name)
        )
        for name in ("torch.compiler", "torch._dynamo"):
            modules[name] = answers(name, COMPILER_ANSWERS)
        modules["torch.jit"] = answers("torch.jit", JIT_ANSWERS)
        modules["torch.version"] = Namespace("torch.version", {"cuda": None, "hip": None, "__version__": VERSION})
        modules["torch.backends"] = Namespace("torch.backends", {}, lambda name: self._library_name("torch.backends", name))
        amp = Namespace("torch.amp", {"autocast": Native(autocast_mode, "autocast", lazy=True)}, lambda name: passing(f"torch.amp.{name}"))
        modules["torch.amp"] = modules["torch.cuda.amp"] = modules["torch.amp.autocast_mode"] = amp
        modules["torch.cuda"].entries["amp"] = amp
        function = Namespace(
            "torch.autograd.function", {"Function": self.classes["Function"], "once_differentiable": passing("once_differentiable")}
        )
        modules["torch.autograd.function"] = function
        modules["torch.autograd"] = Namespace("torch.autograd", {"Function": self.classes["Function"], "function": function})
        checkpoint = Namespace(
            "torch.utils.checkpoint", {"checkpoint": Native(self._plain_checkpoint, "checkpoint", lazy=True, wants_machine=True)}
        )
        modules["torch.utils.checkpoint"] = checkpoint
        modules["torch.utils"] = Namespace("torch.utils", {"checkpoint": checkpoint})
        modules["torch.nn.parameter"] = Namespace("torch.nn.parameter", {name: self.classes[name] for name in ("Parameter", "Buffer")})
        modules["torch.nn.modules"] = Namespace("torch.nn.modules", dict(self.nn.entries), self._nn_module)
        containers = {name: cls for name, cls in self.runtime.modules.classes.items() if name != "Module"}
        modules["torch.nn.modules.container"] = Namespace("torch.nn.modules.container", containers)
        modules["torch.nn.modules.module"] = Namespace("torch.nn.modules.module", {"Module": self.runtime.modules.module})
        modules["torch.nn.attention"] = Namespace("torch.nn.attention", {"sdpa_kernel": constant("sdpa_kernel", inert_mode())})
        modules["torch.nn.parallel"] = Namespace("torch.nn.parallel")
        modules["torch.types"] = Namespace("torch.types", {}, lambda name: Unknown(f"torch.types.{name}", "stub"))
        modules["torch._C"] = Namespace("torch._C", {}, lambda name: Unknown(f"torch._C.{name}", "stub"))

    def _nn_module(self, name: str) -> Any:
        if self.runtime.library.has_prelude(f"torch_nn_modules_{name}"):
            return self.runtime.library.load(f"torch.nn.modules.{name}")
        return self._layer(name)

    def _prefixed(self, prefix: str) -> Callable[[str], Any]:
        def find(name: str) -> Any:
            if name.startswith("__"):
                return MISSING
            key = next((key for key in (f"{prefix}_{name}", name) if self.operations.has(key)), f"{prefix}_{name}")
            return self.operations.native(key, f"torch.{prefix}.{name}")

        return find

    def _library_name(self, owner: str, name: str) -> Any:
        return MISSING if name.startswith("__") else Unknown(f"{owner}.{name}", "lib", self.runtime.machine.place)

    def _plain_checkpoint(self, machine: Machine, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function; forward-time glue puts real checkpointing here."""
        inner = {
            name: value
            for name, value in kwargs.items()
            if name not in {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check"}
        }
        return machine.call(function, list(args), inner)


def refuse(what: str, why: str) -> Any:
    """A call that a model must not need to be built."""
    raise CannotTell(what, why)


FLOAT_LIMITS: Final = {
    "float64": (1.7976931348623157e308, 2.220446049250313e-16, 2.2250738585072014e-308),
    "float32": (3.4028234663852886e38, 1.1920928955078125e-07, 1.1754943508222875e-38),
    "bfloat16": (3.3895313892515355e38, 0.0078125, 1.1754943508222875e-38),
    "float16": (65504.0, 0.0009765625, 6.103515625e-05),
    "float8_e4m3fn": (448.0, 0.125, 0.015625),
    "float8_e5m2": (57344.0, 0.25, 6.103515625e-05),
}
"""max, eps and tiny as torch.finfo states them."""


def finfo(dtype: Any = None) -> Namespace:
    """torch.finfo."""
    known = dtype if isinstance(dtype, DType) else current().default_dtype
    largest, eps, tiny = FLOAT_LIMITS.get(known.name, FLOAT_LIMITS["float32"])
    entries = {"min": -largest, "max": largest, "eps": eps, "tiny": tiny, "smallest_normal": tiny, "bits": known.bits, "dtype": known.name}
    return Namespace("finfo", entries, lambda _: MISSING)


def iinfo(dtype: Any = None) -> Namespace:
    """torch.iinfo."""
    bits = dtype.bits if isinstance(dtype, DType) else 64
    unsigned = isinstance(dtype, DType) and dtype.name.startswith("u")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Namespace("iinfo", {"min": low, "max": high, "bits": bits}, lambda _: MISSING)
