"""Requests and models as plain JSON values, to pass between processes."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from weighbridge.base.dtypes import BY_NAME, DType
from weighbridge.base.errors import BadInput
from weighbridge.model import Buffer, Hole, Model, Module, Parameter
from weighbridge.reading.checks import LARGEST

if TYPE_CHECKING:
    from weighbridge.reading.reader import Request

Value = TypeVar("Value")
GRAPH_SCHEMA = "weighbridge.graph/1"
FACTS = ("title", "model_type", "architecture", "custom_code", "transformers_version")
TEXTS = ("files_read", "defaulted", "unread", "notes")


def fresh(value: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy, so that what classes do to it stays with them."""
    return json.loads(json.dumps(dict(value)))  # type: ignore[no-any-return]  # a dict goes in, a dict comes out


def request_to_plain(request: "Request") -> dict[str, Any]:
    """A request without its limits, which are the child's own."""
    return {
        "title": request.title, "config": fresh(request.config), "files": dict(request.files),
        "transformers_path": request.transformers_path, "architecture": request.architecture,
    }  # fmt: skip


def model_to_plain(model: Model) -> dict[str, Any]:
    """All of a model but its live objects."""
    result: dict[str, Any] = {name: getattr(model, name) for name in FACTS}
    result.update({name: list(getattr(model, name)) for name in TEXTS})
    result["parameters"] = [[p.name, list(p.shape), p.dtype.name, p.tied_to, p.trainable] for p in model.parameters]
    result["buffers"] = [
        [b.name, None if b.shape is None else list(b.shape), b.dtype.name if b.dtype else None, b.persistent] for b in model.buffers
    ]
    result["modules"] = [[m.path, m.class_name, m.parameters, m.total] for m in model.modules]
    result["holes"] = [asdict(hole) for hole in model.holes]
    result["config_values"] = dict(model.config_values)
    result["config_dtype"] = model.config_dtype.name if model.config_dtype else None
    return result


def model_from_plain(values: Mapping[str, Any]) -> Model:
    """The model again, without live objects; TypeError, ValueError or KeyError where a value is not what it must be."""
    if not isinstance(values["config_values"], Mapping):
        raise TypeError("config_values is no object")
    facts: dict[str, Any] = {name: _checked(values, name, bool if name == "custom_code" else str) for name in FACTS}
    facts |= {name: tuple(_typed(text, str, name) for text in _checked(values, name, list)) for name in TEXTS}
    return Model(
        **facts,
        parameters=tuple(_parameter(*row) for row in _checked(values, "parameters", list)),
        buffers=tuple(_buffer(*row) for row in _checked(values, "buffers", list)),
        modules=tuple(_module(*row) for row in _checked(values, "modules", list)),
        holes=tuple(_hole(**row) for row in _checked(values, "holes", list)),
        config_values=values["config_values"],
        config_dtype=_dtype(values["config_dtype"]),
    )


def _checked(values: Mapping[str, Any], name: str, kind: type[Value]) -> Value:
    return _typed(values[name], kind, name)


def _typed(value: Any, kind: type[Value], what: str) -> Value:
    if type(value) is not kind:
        raise TypeError(f"{what} holds {str(value)[:40]!r}, which is no {kind.__name__}")
    return value


def _size(value: Any, what: str) -> int:
    if not 0 <= _typed(value, int, what) < LARGEST:
        raise ValueError(f"{what} holds {str(value)[:40]}, which is no size")
    return int(value)


def _shape(value: Any, what: str) -> tuple[int, ...]:
    shape = tuple(_size(size, f"the shape of {what}") for size in _typed(value, list, f"the shape of {what}"))
    _size(prod(shape), f"the size of {what}")
    return shape


def _dtype(name: Any) -> DType | None:
    return BY_NAME[_typed(name, str, "dtype")] if name is not None else None


def _parameter(name: Any, shape: Any, dtype: Any, tied_to: Any, trainable: Any) -> Parameter:
    name = _typed(name, str, "a parameter's name")
    if tied_to is not None:
        _typed(tied_to, str, f"tied_to of {name}")
    kind = BY_NAME[_typed(dtype, str, "dtype")]
    return Parameter(name, _shape(shape, name), kind, tied_to, _typed(trainable, bool, f"trainable of {name}"))


def _buffer(name: Any, shape: Any, dtype: Any, persistent: Any) -> Buffer:
    name = _typed(name, str, "a buffer's name")
    return Buffer(name, None if shape is None else _shape(shape, name), _dtype(dtype), _typed(persistent, bool, f"persistent of {name}"))


def _module(path: Any, class_name: Any, parameters: Any, total: Any) -> Module:
    path = _typed(path, str, "a module's path")
    return Module(path, _typed(class_name, str, f"the class of {path}"), _size(parameters, path), _size(total, path))


def _hole(what: Any, why: Any, file: Any, line: Any) -> Hole:
    return Hole(_typed(what, str, "a hole"), _typed(why, str, "a hole"), _typed(file, str, "a hole"), _size(line, "a hole"))


def model_to_graph(model: Model) -> dict[str, Any]:
    """The document of a graph file: the read model, complete enough to count from again without its source."""
    return {"schema": GRAPH_SCHEMA, "model": {"id": model.title}, "read": model_to_plain(model)}


def model_from_graph(document: Mapping[str, Any]) -> Model:
    """The model of a graph file; BadInput where it holds none."""
    try:
        return model_from_plain(document["read"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"the graph file holds no read model: {type(error).__name__} {str(error)[:200]}", "write one with scripts/write_graph"
        ) from error
