"""From a config.json to its configuration object and the class that is built from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base.dtypes import BY_NAME, DType
from weighbridge.base.errors import BadConfig, CannotTell
from weighbridge.reading.glue.auto_api import AutoApi
from weighbridge.reading.glue.config_classes import ConfigInstance, config_fields
from weighbridge.reading.glue.library import Library
from weighbridge.reading.python import MISSING, Class, Function, Property
from weighbridge.reading.source_set import SourceSet

FILE: Final = "config.json"
AUTO_ORDER: Final = (
    "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForImageTextToText", "AutoModelForVision2Seq", "AutoModelForMaskedLM",
    "AutoModelForSequenceClassification", "AutoModel",
)  # fmt: skip
"""The auto classes of an auto_map, in the order in which a head is preferred."""
BOOKKEEPING: Final = frozenset({
    "architectures", "auto_map", "model_type", "transformers_version", "torch_dtype", "dtype", "_name_or_path", "quantization_config",
    "_commit_hash", "name_or_path", "task_specific_params", "license", "custom_pipelines", "id2label", "label2id", "problem_type",
    "attn_implementation", "_attn_implementation", "use_cache", "tokenizer_class", "processor_class", "transformers.js_config",
})  # fmt: skip
"""Keys that say something about the file, its checkpoint or its use, and that no model class needs to read."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A configuration, the class to build from it, and whether the class is the repository's own."""

    config: ConfigInstance
    cls: Class
    model_type: str
    custom: bool


def custom_map(config: Mapping[str, Any], sources: SourceSet) -> dict[str, str]:
    """The model and configuration classes that the config takes from Python files, where any are at hand."""
    found = config.get("auto_map")
    entries = {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, Mapping) else {}
    models = {name: value for name, value in entries.items() if name.startswith(("AutoModel", "AutoConfig"))}
    return models if any(name.startswith("AutoModel") for name in models) and (sources.files or config.get("model_type") is None) else {}


def first_architecture(config: Mapping[str, Any]) -> str | None:
    """What `architectures` names first."""
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def choose_custom(library: Library, config: Mapping[str, Any], entries: Mapping[str, str], architecture: str | None) -> Chosen:
    """The classes that auto_map names."""
    machine, sources = library.machine, library.sources
    wanted = architecture or first_architecture(config)
    reference = _custom_reference(entries, wanted)
    module_name, class_name = sources.locate(reference)
    module = library.resolve(machine, module_name)
    if module is None:
        raise _missing_file(module_name, reference)
    plain_names = {value.rpartition(".")[2] for value in entries.values()}
    cls: Any = MISSING
    if wanted and wanted not in plain_names and "For" in wanted:
        cls = library.find(module_name, wanted)
    if cls is MISSING:
        cls = library.find(module_name, class_name)
    if not isinstance(cls, Class):
        raise CannotTell(f"the class {class_name}", f"{module_name.partition('.')[2]}.py does not define it", file=FILE, line=0)
    config_class = _custom_config(library, entries, cls)
    values = {key: value for key, value in config.items() if key != "model_type"}
    made = machine.call(config_class, [], values)
    if not isinstance(made, ConfigInstance):
        raise CannotTell("the configuration", f"{class_name} takes one that is not a transformers configuration", file=FILE, line=0)
    return Chosen(made, cls, str(config.get("model_type") or machine.getattr(made, "model_type", "")), custom=True)


def _custom_reference(entries: Mapping[str, str], wanted: str | None) -> str:
    exact = next((value for name, value in entries.items() if name != "AutoConfig" and wanted and value.rpartition(".")[2] == wanted), None)
    if exact is not None:
        return exact
    ordered = [*AUTO_ORDER, *(name for name in entries if name.startswith("AutoModel"))]
    return next(entries[name] for name in ordered if name in entries)


def _custom_config(library: Library, entries: Mapping[str, str], cls: Class) -> Any:
    machine = library.machine
    if "AutoConfig" not in entries:
        return machine.getattr(cls, "config_class")
    module_name, class_name = library.sources.locate(entries["AutoConfig"])
    module = library.resolve(machine, module_name)
    if module is None:
        raise _missing_file(module_name, entries["AutoConfig"])
    return machine.getattr(module, class_name)


def _missing_file(module: str, reference: str) -> CannotTell:
    name = module.partition(".")[2].replace(".", "/") + ".py"
    return CannotTell(
        f"the file {name}", f"auto_map names it as {reference!r}, and it was not found", file=FILE, line=0, hint=f"supply {name}"
    )


def _texts_of(auto_map: Any) -> list[str]:
    """The references of an auto_map, whatever shape a config gives it."""
    values = auto_map.values() if isinstance(auto_map, Mapping) else ()
    return [value for value in values if isinstance(value, str)]


def choose_builtin(library: Library, auto: AutoApi, config: Mapping[str, Any], architecture: str | None) -> Chosen:
    """The classes that transformers has for a model type."""
    model_type = _model_type(library, config)
    if model_type not in library.tables.configs:
        named = next(iter(_texts_of(config.get("auto_map"))), None)
        own = f"the code it names ({named}) is not at hand" if named else "the config names no code of its own"
        why = f"transformers {library.sources.transformers.version} has no such type, and {own}"
        raise CannotTell(
            f"the model type {model_type!r}", why, file=FILE, line=0, hint="give a newer transformers, or the repository's .py files"
        )
    values = {key: value for key, value in config.items() if key != "model_type"}
    made = library.machine.call(auto.config_class(model_type), [], values)
    assert isinstance(made, ConfigInstance)
    cls = _builtin_class(library, auto, model_type, architecture, config)
    return Chosen(auto.fitting(cls, made), cls, model_type, custom=False)


def _model_type(library: Library, config: Mapping[str, Any]) -> str:
    found = config.get("model_type")
    if isinstance(found, str) and found:
        return found
    names = config.get("architectures")
    for name in names if isinstance(names, list) else []:
        for table in library.tables.tables.values():
            for model_type, classes in table.items():
                if name in classes:
                    return model_type
    raise CannotTell("the model type", "the config has no model_type and names no class that transformers knows", file=FILE, line=0)


def _builtin_class(library: Library, auto: AutoApi, model_type: str, architecture: str | None, config: Mapping[str, Any]) -> Class:
    names = config.get("architectures")
    wanted = [architecture] if architecture else [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    known = library.tables.known()
    for name in wanted:
        found = library.in_package(library.model_package(model_type), name)
        if found is MISSING and name in known:
            found = library.top_level(name)
        if isinstance(found, Class):
            return found
    if architecture:
        raise CannotTell(f"the class {architecture}", f"the model type {model_type} has no such class", file=FILE, line=0)
    main = library.tables.main_class(model_type)
    if main is None:
        raise CannotTell(f"a class for the model type {model_type!r}", "no auto class maps it", file=FILE, line=0)
    return auto.model_class(model_type, main)


def config_dtype(library: Library, config: ConfigInstance) -> DType | None:
    """The type that the checkpoint's weights are meant to be loaded in."""
    for name in ("dtype", "torch_dtype"):
        value = library.machine.getattr(config, name, None)
        if isinstance(value, str):
            value = BY_NAME.get(value.removeprefix("torch."))
        if isinstance(value, DType):
            return value
    inner = next((value for value in config.fields.values() if isinstance(value, ConfigInstance) and "dtype" in value.fields), None)
    return config_dtype(library, inner) if inner is not None else None


def plain_values(config: ConfigInstance) -> dict[str, Any]:
    """The configuration as plain JSON values, sub-configurations included."""
    return {name: _plain(value) for name, value in config.fields.items() if not name.startswith("_")}


def _plain(value: Any) -> Any:
    if isinstance(value, ConfigInstance):
        return plain_values(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def unread_keys(given: Mapping[str, Any], config: ConfigInstance, prefix: str = "") -> Iterator[str]:
    """The keys of config.json that no class declares and that nothing read."""
    declared = _declared(config.cls)
    for key, value in given.items():
        name = config.translate(key)
        inner = config.fields.get(name)
        if isinstance(inner, ConfigInstance) and isinstance(value, Mapping):
            yield from unread_keys(value, inner, f"{prefix}{key}.")
        elif (
            key not in BOOKKEEPING
            and not key.startswith("_")
            and not declared & {key, name}
            and name in config.fields
            and name not in config.reads
        ):
            yield prefix + key


def defaulted_keys(given: Mapping[str, Any], config: ConfigInstance, prefix: str = "") -> Iterator[str]:
    """The attributes that were read, that the class defaults, and that config.json leaves out."""
    stated = set(given) | {config.translate(key) for key in given}
    for name in config.fields:
        value = config.fields[name]
        if isinstance(value, ConfigInstance):
            inside = given.get(name)
            yield from defaulted_keys(inside if isinstance(inside, Mapping) else {}, value, f"{prefix}{name}.")
        elif name in config.reads and name not in stated and name not in BOOKKEEPING and name[:1] != "_" and name in _declared(config.cls):
            yield prefix + name


def _declared(cls: Class) -> set[str]:
    """What a configuration class names itself: fields of a dataclass, parameters of __init__, properties."""
    names = set(config_fields(cls))
    for owner in cls.mro:
        initializer = owner.namespace.get("__init__")
        if type(initializer) is Function:
            names.update(initializer.code.positional[1:], initializer.code.keyword_only)
        names.update(name for name, value in owner.namespace.items() if type(value) is Property)
    return names


def check_is_mapping(config: Any) -> None:
    """Refuse a config.json that is not an object."""
    if not isinstance(config, Mapping):
        raise BadConfig(f"{FILE} holds {type(config).__name__}, not an object")
