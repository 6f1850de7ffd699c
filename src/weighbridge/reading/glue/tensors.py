"""Adapters through which interpreted code touches phantom tensors, dtypes and devices."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.dtypes import DType
from weighbridge.base.errors import DataDependent
from weighbridge.phantom import OPERATIONS, Tensor
from weighbridge.phantom.operations import item
from weighbridge.phantom.ops.reductions import Pair
from weighbridge.phantom.tensor import is_contiguous, numel
from weighbridge.reading.glue.contexts import Mode, ModeForeign
from weighbridge.reading.python import MISSING, Bound, Class, Foreign, Machine, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.operations import Operations
    from weighbridge.reading.glue.runtime import Runtime

BINARY: Final = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "floor_divide", "Mod": "remainder", "Pow": "pow",
    "MatMult": "matmul", "BitAnd": "bitwise_and", "BitOr": "bitwise_or", "BitXor": "bitwise_xor", "LShift": "bitwise_left_shift",
    "RShift": "bitwise_right_shift",
}  # fmt: skip
COMPARISONS: Final = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}
UNARY: Final = {"USub": "neg", "Invert": "bitwise_not", "Abs": "abs"}
FLOATING_CLASSES: Final = {"FloatTensor": "float32", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "DoubleTensor": "float64"}
INTEGER_CLASSES: Final = {"LongTensor": "int64", "IntTensor": "int32", "BoolTensor": "bool", "ByteTensor": "uint8"}
TENSOR_CLASSES: Final = FLOATING_CLASSES | INTEGER_CLASSES


@dataclass(frozen=True, slots=True)
class Device:
    """torch.device."""

    type: str
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Device":
        """cuda:0 and the like."""
        kind, _, index = text.partition(":")
        return cls(kind, int(index) if index.isdigit() else None)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class TensorForeign(Foreign):
    """A phantom tensor: its attributes, its methods from the operations, its operators."""

    name = "Tensor"

    def __init__(self, runtime: "Runtime", operations: "Operations") -> None:
        self.runtime, self.operations = runtime, operations
        self.methods: dict[str, Native] = {
            name: Native(function, f"Tensor.{name}", lazy=True) for name, function in self._own_methods().items()
        }

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """An attribute or a bound method."""
        attribute = ATTRIBUTES.get(name)
        if attribute is not None:
            return attribute(self, value)
        method = self.methods.get(name)
        if method is None:
            if name in OPERATIONS:
                method = self.methods[name] = self.operations.native(name, f"Tensor.{name}")
            elif self.runtime.constructing and default is MISSING and not name.startswith("_"):
                method = self.methods[name] = self._missing_method(name)
            else:
                return super().getattr(machine, value, name, default)
        return Bound(value, method)

    def _missing_method(self, name: str) -> Native:
        """While a model is built: filling a tensor leaves it as it is, any other result is unknown."""
        if name.endswith("_"):
            return Native(lambda tensor, *_, **__: tensor, f"Tensor.{name}", lazy=True)
        return self.operations.native(name, f"Tensor.{name}")

    def _own_methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "size": lambda tensor, dim=None: tensor.shape if dim is None else tensor.shape[dim],
            "dim": lambda tensor: len(tensor.shape),
            "ndimension": lambda tensor: len(tensor.shape),
            "numel": lambda tensor: numel(tensor.shape),
            "nelement": lambda tensor: numel(tensor.shape),
            "stride": lambda tensor, dim=None: tensor.stride if dim is None else tensor.stride[dim],
            "element_size": lambda tensor: tensor.dtype.itemsize,
            "is_contiguous": lambda tensor, **_: is_contiguous(tensor),
            "is_floating_point": lambda tensor: tensor.dtype.is_floating_point,
            "is_complex": lambda tensor: tensor.dtype.is_complex,
            "item": self.item,
            "tolist": self.tolist,
            "numpy": lambda tensor, **_: tensor,
            "cpu": lambda tensor, **_: tensor,
            "cuda": lambda tensor, *_, **__: tensor,
            "pin_memory": lambda tensor, *_: tensor,
            "share_memory_": lambda tensor: tensor,
            "requires_grad_": self.require_grad,
            "retain_grad": lambda tensor: None,
            "register_hook": lambda tensor, *_: None,
            "data_ptr": lambda tensor: tensor.storage.id,
            "get_device": lambda tensor: 0,
            "is_shared": lambda tensor: False,
            "__len__": lambda tensor: tensor.shape[0],
        }

    def require_grad(self, tensor: Tensor, requires_grad: bool = True) -> Tensor:
        """requires_grad_()."""
        tensor.requires_grad = bool(requires_grad)
        return tensor

    def item(self, tensor: Tensor) -> Any:
        """The number in a tensor of one element."""
        try:
            return item(tensor)
        except DataDependent as error:
            return self.operations.undecided(self.runtime.machine, error)

    def tolist(self, tensor: Tensor) -> Any:
        """The values as nested lists; where they are unknown, a list of unknowns or a refusal."""
        machine = self.runtime.machine
        machine.charge(numel(tensor.shape))
        if tensor.value is not None:
            return tensor.value.tolist()
        unknown = self.operations.undecided(machine, DataDependent("the values of a tensor", f"shape {tensor.shape}"))
        return [unknown] * tensor.shape[0] if len(tensor.shape) == 1 else unknown

    def setattr(self, machine: Machine, value: Any, name: str, new: Any) -> None:
        """Data replaces the tensor's contents; marks that code leaves on a tensor are dropped."""
        if name == "data" and isinstance(new, Tensor):
            value.shape, value.stride, value.dtype, value.storage, value.value = new.shape, new.stride, new.dtype, new.storage, new.value
            machine.mutations += 1
        elif name == "requires_grad":
            value.requires_grad = machine.truth(new)
        elif name == "grad":
            value.grad = new

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:
        """value[key]."""
        return self.operations.apply("__getitem__", value, key)

    def setitem(self, machine: Machine, value: Any, key: Any, new: Any) -> None:
        """value[key] = new; what is known of the values is lost where the operation cannot follow."""
        if "__setitem__" in OPERATIONS and type(new) is not Unknown and type(key) is not Unknown:
            self.operations.apply("__setitem__", value, key, new)
        else:
            value.value = None

    def iterate(self, machine: Machine, value: Any) -> Iterator[Any]:
        """The slices along the first dimension."""
        if not value.shape:
            raise TypeError("iteration over a 0-d tensor")
        machine.charge(value.shape[0])
        return iter(self.operations.apply("unbind", value, 0))

    def length(self, machine: Machine, value: Any) -> int:
        """The first dimension."""
        if not value.shape:
            raise TypeError("len() of a 0-d tensor")
        return value.shape[0]  # type: ignore[no-any-return]  # a shape holds ints

    def truth(self, machine: Machine, value: Any) -> Any:
        """The truth of the one element."""
        found = self.item(value)
        return found if type(found) is Unknown else bool(found)

    def number(self, machine: Machine, value: Any) -> Any:
        """The one element."""
        return self.item(value)

    def binop(self, machine: Machine, op_name: str, value: Any, other: Any, reflected: bool) -> Any:
        """Arithmetic with a tensor or a number."""
        if not isinstance(other, (Tensor, int, float, complex)):
            if type(other) is Unknown:
                return other
            return NotImplemented
        pair = (other, value) if reflected else (value, other)
        return self.operations.apply(BINARY[op_name], *pair)

    def inplace(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:
        """Arithmetic into the tensor itself, where there is such an operation."""
        name = f"{BINARY[op_name]}_"
        if name not in OPERATIONS or type(other) is Unknown:
            return NotImplemented
        return self.operations.apply(name, value, other)

    def unary(self, machine: Machine, op_name: str, value: Any) -> Any:
        """-value, ~value, abs(value)."""
        return self.operations.apply(UNARY[op_name], value) if op_name in UNARY else value

    def compare(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:
        """Element-wise order."""
        return self.operations.apply(COMPARISONS[op_name], value, other) if isinstance(other, (Tensor, int, float)) else NotImplemented

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """Element-wise equality; False for what is no number."""
        return self.operations.apply("eq", value, other) if isinstance(other, (Tensor, int, float)) else False

    def not_equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """Element-wise inequality; True for what is no number."""
        return self.operations.apply("ne", value, other) if isinstance(other, (Tensor, int, float)) else True

    def contains(self, machine: Machine, value: Any, item: Any) -> Any:
        """Whether any element equals the item."""
        return self.operations.apply("any", self.equal(machine, value, item))

    def isinstance(self, machine: Machine, value: Any, cls: Any) -> Any:
        """Tensor, Parameter, Buffer and the tensor classes by dtype."""
        name = str(cls.name) if isinstance(cls, (Class, Native)) else ""
        if name == "Parameter":
            return value.is_parameter
        if name == "Buffer":
            return value.is_buffer
        return name == "Tensor" or TENSOR_CLASSES.get(name) == value.dtype.name

    def type(self, machine: Machine, value: Any) -> Any:
        """The class a tensor is of."""
        return self.runtime.torch.classes["Parameter" if value.is_parameter else "Tensor"]

    def format(self, machine: Machine, value: Any, spec: str) -> Any:
        """A number's text where the value is known."""
        if not value.shape and value.value is not None:
            return format(item(value), spec)
        return f"tensor(..., size={value.shape}, dtype=torch.{value.dtype.name})"


ATTRIBUTES: Final[dict[str, Callable[[TensorForeign, Tensor], Any]]] = {
    "shape": lambda _, tensor: tensor.shape,
    "ndim": lambda _, tensor: len(tensor.shape),
    "dtype": lambda _, tensor: tensor.dtype,
    "device": lambda self, _: self.runtime.device,
    "requires_grad": lambda _, tensor: tensor.requires_grad,
    "grad": lambda _, tensor: tensor.grad,
    "grad_fn": lambda _, tensor: tensor.node,
    "is_leaf": lambda _, tensor: tensor.is_leaf,
    "data": lambda self, tensor: tensor if self.runtime.constructing else self.operations.apply("detach", tensor),
    "T": lambda self, tensor: self.operations.apply("permute", tensor, tuple(reversed(range(len(tensor.shape))))),
    "mT": lambda self, tensor: self.operations.apply("transpose", tensor, -2, -1),
    "H": lambda self, tensor: self.operations.apply("adjoint", tensor),
    "is_cuda": lambda self, _: self.runtime.device.type == "cuda",
    "is_cpu": lambda self, _: self.runtime.device.type == "cpu",
    "is_meta": lambda self, _: self.runtime.device.type == "meta",
    "is_sparse": lambda *_: False,
    "is_quantized": lambda *_: False,
    "is_nested": lambda *_: False,
    "itemsize": lambda _, tensor: tensor.dtype.itemsize,
    "nbytes": lambda _, tensor: tensor.nbytes,
    "layout": lambda self, _: self.runtime.torch.torch.get("strided"),
    "real": lambda self, tensor: self.operations.apply("real", tensor),
    "imag": lambda self, tensor: self.operations.apply("imag", tensor),
}


class DTypeForeign(Foreign):
    """torch.dtype."""

    name = "dtype"

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """is_floating_point, is_complex, itemsize, is_signed."""
        if name in {"is_floating_point", "is_complex", "itemsize"}:
            return getattr(value, name)
        if name == "is_signed":
            return value.kind > 1 or (value.kind == 1 and not value.name.startswith("u"))
        return super().getattr(machine, value, name, default)

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """Dtypes are the same object or differ."""
        return value is other

    def isinstance(self, machine: Machine, value: Any, cls: Any) -> Any:
        """torch.dtype itself."""
        return getattr(cls, "name", "") == "dtype"

    def format(self, machine: Machine, value: Any, spec: str) -> Any:
        """torch.float32 and the like."""
        return format(f"torch.{value.name}", spec)


class DeviceForeign(Foreign):
    """torch.device."""

    name = "device"

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """Type and index."""
        if name in {"type", "index"}:
            return getattr(value, name)
        return super().getattr(machine, value, name, default)

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """Devices compare by type and index."""
        return value == other

    def isinstance(self, machine: Machine, value: Any, cls: Any) -> Any:
        """torch.device itself."""
        return getattr(cls, "name", "") == "device"

    def enter(self, machine: Machine, value: Any) -> Any:
        """`with torch.device(...)`: phantoms lie nowhere."""
        return value

    def format(self, machine: Machine, value: Any, spec: str) -> Any:
        """cuda:0 and the like."""
        return format(str(value), spec)


class PairForeign(Foreign):
    """(values, indices), as torch's named tuples."""

    name = "tuple"

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """`values` and `indices`."""
        return getattr(value, name) if name in {"values", "indices"} else super().getattr(machine, value, name, default)

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:
        """By place."""
        return tuple(value)[key]

    def iterate(self, machine: Machine, value: Any) -> Iterator[Any]:
        """Unpacked."""
        return iter(value)

    def length(self, machine: Machine, value: Any) -> int:
        """Two."""
        return len(value)


def adapters(runtime: "Runtime") -> dict[type, Foreign]:
    """The adapters of one reading."""
    return {
        Tensor: TensorForeign(runtime, runtime.operations),
        DType: DTypeForeign(),
        Device: DeviceForeign(),
        Mode: ModeForeign(),
        Pair: PairForeign(),
    }
