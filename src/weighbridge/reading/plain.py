"""Requests and models as plain JSON values, to pass between processes."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weighbridge.base.dtypes import BY_NAME
from weighbridge.base.errors import BadInput
from weighbridge.model import Buffer, Hole, Model, Module, Parameter

if TYPE_CHECKING:
    from weighbridge.reading.reader import Request

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
    """The model again, without live objects."""
    facts: dict[str, Any] = {name: values[name] for name in FACTS} | {name: tuple(values[name]) for name in TEXTS}
    return Model(
        **facts,
        parameters=tuple(
            Parameter(name, tuple(shape), BY_NAME[dtype], tied, train) for name, shape, dtype, tied, train in values["parameters"]
        ),
        buffers=tuple(
            Buffer(name, None if shape is None else tuple(shape), BY_NAME[dtype] if dtype else None, keep)
            for name, shape, dtype, keep in values["buffers"]
        ),
        modules=tuple(Module(*module) for module in values["modules"]),
        holes=tuple(Hole(**hole) for hole in values["holes"]),
        config_values=values["config_values"],
        config_dtype=BY_NAME[values["config_dtype"]] if values["config_dtype"] else None,
    )


def model_to_graph(model: Model) -> dict[str, Any]:
    """The document of a graph file: the read model, complete enough to count from again without its source."""
    return {"schema": GRAPH_SCHEMA, "model": {"id": model.title}, "read": model_to_plain(model)}


def model_from_graph(document: Mapping[str, Any]) -> Model:
    """The model of a graph file; BadInput where it holds none."""
    try:
        return model_from_plain(document["read"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"the graph file holds no read model: {type(error).__name__} {error}", "write one with scripts/write_graph"
        ) from error
