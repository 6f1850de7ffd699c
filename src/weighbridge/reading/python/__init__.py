"""A subset of Python interpreted over its syntax tree, bounded and cut off from Python's own objects. Knows no torch."""

from weighbridge.reading.python.exceptions import ContextManager
from weighbridge.reading.python.foreign import Foreign
from weighbridge.reading.python.generators import Generator
from weighbridge.reading.python.limits import Limits
from weighbridge.reading.python.machine import Machine
from weighbridge.reading.python.modules import SourceModule, parse
from weighbridge.reading.python.objects import OBJECT, Annotation, Class, FieldSpec, Instance
from weighbridge.reading.python.values import (
    MISSING,
    Bound,
    CachedProperty,
    ClassMethod,
    DefaultDict,
    Function,
    Namespace,
    Native,
    Partial,
    Property,
    Raised,
    StaticMethod,
    Super,
    TypeObject,
    Union,
    Unknown,
)

__all__ = [
    "MISSING",
    "OBJECT",
    "Annotation",
    "Bound",
    "CachedProperty",
    "Class",
    "ClassMethod",
    "ContextManager",
    "DefaultDict",
    "FieldSpec",
    "Foreign",
    "Function",
    "Generator",
    "Instance",
    "Limits",
    "Machine",
    "Namespace",
    "Native",
    "Partial",
    "Property",
    "Raised",
    "SourceModule",
    "StaticMethod",
    "Super",
    "TypeObject",
    "Union",
    "Unknown",
    "parse",
]
