"""The auto classes' tables, read as literals from the text of models/auto and never imported."""

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base.cache import Cache
from weighbridge.reading.source_set import TransformersSource

FILES: Final = ("auto_mappings.py", "configuration_auto.py", "modeling_auto.py")
KIND: Final = "auto-3"
"""The name of the cached form; its number grows whenever the form changes."""
CONFIGS: Final = "CONFIG_MAPPING_NAMES"
FOLDERS: Final = "SPECIAL_MODEL_TYPE_TO_MODULE_NAME"
MAIN_TABLES: Final = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_CTC_MAPPING_NAMES",
)
"""The heads a model of a type is published with, the likeliest first."""
BASE_TABLE: Final = "MODEL_MAPPING_NAMES"


@dataclass(frozen=True, slots=True)
class AutoTables:
    """`configs`: model type -> config class; `folders`: model type -> folder; `tables`: table -> model type -> class names."""

    configs: dict[str, str]
    folders: dict[str, str]
    tables: dict[str, dict[str, tuple[str, ...]]]
    mappings: dict[str, str]
    """Auto class name -> table name."""

    @classmethod
    def read(cls, source: TransformersSource, cache: Cache | None = None) -> "AutoTables":
        """Read the tables of one transformers package."""
        folder = source.root / "models" / "auto"
        texts = [path.read_text(encoding="utf-8") for path in (folder / name for name in FILES) if path.is_file()]
        cached = cache.load_json(KIND, *texts) if cache is not None else None
        if cached is None:
            cached = _collect(texts)
            if cache is not None:
                cache.store_json(KIND, json.dumps(cached), *texts)
        tables = {name: {key: tuple(value) for key, value in table.items()} for name, table in cached["tables"].items()}
        return cls(cached["configs"], cached["folders"], tables, cached["mappings"])

    def folder(self, model_type: str) -> str:
        """The folder under models/ that holds a model type."""
        return self.folders.get(model_type, model_type).replace("-", "_")

    def types_of(self, config_class: str) -> list[str]:
        """The model types whose config class has this name."""
        return [model_type for model_type, name in self.configs.items() if name == config_class]

    def classes(self, table: str, model_type: str) -> tuple[str, ...]:
        """The class names a table gives for a model type."""
        return self.tables.get(table, {}).get(model_type, ())

    def main_class(self, model_type: str) -> str | None:
        """The class to take for a config that names none: the main head's, else the base's, else any."""
        for table in (*MAIN_TABLES, BASE_TABLE, *self.tables):
            if names := self.classes(table, model_type):
                return names[0]
        return None

    def known(self) -> set[str]:
        """Every class name of every table."""
        return {name for table in self.tables.values() for names in table.values() for name in names}


def _collect(texts: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    lazy: dict[str, str] = {}
    mappings: dict[str, str] = {}
    for text in texts:
        for statement in ast.parse(text).body:
            _read_statement(statement, names, lazy, mappings)
    tables = {
        name: {str(key): [value] if isinstance(value, str) else list(value) for key, value in table.items()}
        for name, table in names.items()
        if name.endswith("_NAMES") and name not in {CONFIGS, FOLDERS} and isinstance(table, dict)
    }
    mapped = {auto: lazy[name] for auto, name in mappings.items() if name in lazy}
    return {"configs": names.get(CONFIGS, {}), "folders": names.get(FOLDERS, {}), "tables": tables, "mappings": mapped}


def _read_statement(statement: ast.stmt, names: dict[str, Any], lazy: dict[str, str], mappings: dict[str, str]) -> None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="_LazyAutoMapping"), args=[_, ast.Name(id=table)])):
            lazy[name] = table
        case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            result = _literal(value, names)
            if isinstance(result, dict):
                names[name] = result
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[argument])):
            extra = _literal(argument, names)
            if isinstance(extra, dict) and isinstance(names.get(name), dict):
                names[name].update(extra)
        case ast.ClassDef(name=auto, body=body):
            for inner in body:
                match inner:
                    case ast.Assign(targets=[ast.Name(id="_model_mapping")], value=ast.Name(id=mapping)):
                        mappings[auto.removeprefix("_")] = mapping
        case _:
            pass


def _literal(node: ast.expr, names: dict[str, Any]) -> Any:
    """A dict from a literal, OrderedDict(...), or one unpacking such names; None for anything else."""
    match node:
        case ast.Call(
            func=ast.Name(id="OrderedDict" | "dict") | ast.Subscript(value=ast.Name(id="OrderedDict" | "dict")),
            args=args,
            keywords=keywords,
        ):
            merged: dict[str, Any] = {}
            for part in [_literal(value, names) for value in (*args, *(keyword.value for keyword in keywords if keyword.arg is None))]:
                merged.update(_pairs(part))
            return merged
        case ast.Name(id=name):
            return names.get(name)
        case ast.Dict(keys=keys, values=values) if None in keys:
            merged = {}
            for key, value in zip(keys, values, strict=True):
                merged.update(_pairs(_literal(value, names)) if key is None else {ast.literal_eval(key): _value(value)})
            return merged
        case ast.List(elts=elements) if any(isinstance(element, ast.Starred) for element in elements):
            merged = {}
            for element in elements:
                merged.update(_starred(element.value, names) if isinstance(element, ast.Starred) else [_value(element)])
            return merged
        case ast.Dict() | ast.List() | ast.Tuple():
            return _value(node)
        case _:
            return None


def _starred(node: ast.expr, names: dict[str, Any]) -> dict[str, Any]:
    """The table behind `TABLE.items()` or `list(TABLE.items())`."""
    match node:
        case ast.Call(func=ast.Name(id="list"), args=[inner]):
            return _starred(inner, names)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items")):
            return _pairs(names.get(name))
        case _:
            return {}


def _pairs(part: Any) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    return dict(part) if isinstance(part, Iterable) else {}


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
