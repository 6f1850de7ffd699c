"""Element types: their names in torch and in safetensors, their sizes and how they promote."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DType:
    """One element type. `kind` orders promotion: 0 bool, 1 integer, 2 floating point, 3 complex."""

    name: str
    bits: int
    kind: int
    safetensors: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes of one element as torch stores it (a sub-byte type takes a whole byte)."""
        return max(1, self.bits // 8)

    @property
    def is_floating_point(self) -> bool:
        """True for real floating point types, as torch.dtype says it."""
        return self.kind == 2

    @property
    def is_complex(self) -> bool:
        """True for complex types."""
        return self.kind == 3

    def __repr__(self) -> str:
        return f"torch.{self.name}"


BOOL: Final = DType("bool", 8, 0, "BOOL")
UINT8: Final = DType("uint8", 8, 1, "U8")
INT8: Final = DType("int8", 8, 1, "I8")
INT16: Final = DType("int16", 16, 1, "I16")
UINT16: Final = DType("uint16", 16, 1, "U16")
INT32: Final = DType("int32", 32, 1, "I32")
UINT32: Final = DType("uint32", 32, 1, "U32")
INT64: Final = DType("int64", 64, 1, "I64")
UINT64: Final = DType("uint64", 64, 1, "U64")
FLOAT8_E4M3FN: Final = DType("float8_e4m3fn", 8, 2, "F8_E4M3")
FLOAT8_E5M2: Final = DType("float8_e5m2", 8, 2, "F8_E5M2")
FLOAT8_E4M3FNUZ: Final = DType("float8_e4m3fnuz", 8, 2)
FLOAT8_E5M2FNUZ: Final = DType("float8_e5m2fnuz", 8, 2)
FLOAT8_E8M0FNU: Final = DType("float8_e8m0fnu", 8, 2, "F8_E8M0")
FLOAT4_E2M1FN_X2: Final = DType("float4_e2m1fn_x2", 8, 2, "F4")
FLOAT16: Final = DType("float16", 16, 2, "F16")
BFLOAT16: Final = DType("bfloat16", 16, 2, "BF16")
FLOAT32: Final = DType("float32", 32, 2, "F32")
FLOAT64: Final = DType("float64", 64, 2, "F64")
COMPLEX32: Final = DType("complex32", 32, 3)
COMPLEX64: Final = DType("complex64", 64, 3, "C64")
COMPLEX128: Final = DType("complex128", 128, 3)

ALL: Final = (
    BOOL, UINT8, INT8, INT16, UINT16, INT32, UINT32, INT64, UINT64,
    FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU, FLOAT4_E2M1FN_X2,
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX32, COMPLEX64, COMPLEX128,
)  # fmt: skip

BY_NAME: Final = {dtype.name: dtype for dtype in ALL} | {
    "half": FLOAT16, "float": FLOAT32, "double": FLOAT64, "short": INT16, "int": INT32, "long": INT64,
    "cfloat": COMPLEX64, "cdouble": COMPLEX128, "chalf": COMPLEX32,
}  # fmt: skip
BY_SAFETENSORS: Final = {dtype.safetensors: dtype for dtype in ALL if dtype.safetensors}


def promote(a: DType, b: DType) -> DType:
    """The type of an operation on two tensors of the same rank class, as torch.promote_types.

    Source: pytorch.org/docs/stable/tensor_attributes.html#type-promotion.
    """
    if a is b:
        return a
    if a.kind != b.kind:
        return a if a.kind > b.kind else b
    if a.bits != b.bits:
        wide, narrow = (a, b) if a.bits > b.bits else (b, a)
        return wide if a.kind != 1 or wide.name[0] != "u" or narrow.name[0] == "u" else _signed_above(wide)
    if a.kind == 2:
        return FLOAT32
    return a if a.name[0] != "u" else b if b.name[0] != "u" else a


def _signed_above(dtype: DType) -> DType:
    return {8: INT16, 16: INT32, 32: INT64}.get(dtype.bits, INT64)
