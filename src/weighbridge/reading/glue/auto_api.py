"""AutoConfig, AutoModel... and the mappings between configurations and classes, over the literal tables."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from weighbridge.base.errors import CannotTell
from weighbridge.reading.glue.config_classes import ConfigInstance
from weighbridge.reading.glue.library import Library
from weighbridge.reading.python import MISSING, Class, ClassMethod, Foreign, Machine, Native, Unknown

LOADING_KEYWORDS: Final = frozenset({
    "attn_implementation", "experts_implementation", "torch_dtype", "dtype", "trust_remote_code", "allow_all_kernels",
    "use_flash_attention_2",
    "code_revision", "revision", "_fast_init", "use_safetensors", "low_cpu_mem_usage",
})  # fmt: skip
"""Keywords of from_config() that say how to load and that no model's __init__ receives."""


def model_keywords(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that from_config() hands on to the model class."""
    return {name: value for name, value in kwargs.items() if name not in LOADING_KEYWORDS}


def needs_repository(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse from_pretrained() inside a model: its answer lies in another repository."""
    wanted = args[0] if args else kwargs.get("pretrained_model_name_or_path", "another repository")
    shown = wanted.why if isinstance(wanted, Unknown) else str(wanted)
    raise CannotTell(f"{name}.from_pretrained({shown!r})", "the model takes a part from another repository", hint=f"give {shown} as well")


class ConfigMapping:
    """CONFIG_MAPPING: model type -> configuration class."""


class ModelMapping:
    """A MODEL_..._MAPPING: configuration class -> model class."""

    def __init__(self, table: str) -> None:
        self.table = table


class AutoApi:
    """The auto classes of one read."""

    def __init__(self, library: Library) -> None:
        self.library, self.tables = library, library.tables
        self.made: dict[str, Any] = {}
        library.machine.foreign[ConfigMapping] = ConfigMappingForeign(self)
        library.machine.foreign[ModelMapping] = ModelMappingForeign(self)

    def overlay(self, module: str, name: str) -> Any:
        """The value of a name in `transformers`, models.auto or wherever an auto class is imported from."""
        if not module.startswith("transformers"):
            return MISSING
        if name.startswith("Auto") or name == "CONFIG_MAPPING" or (name.startswith("MODEL_") and name.endswith(("_MAPPING", "_NAMES"))):
            if name not in self.made:
                self.made[name] = self._make(name)
            return self.made[name]
        return MISSING

    def _make(self, name: str) -> Any:
        if name == "CONFIG_MAPPING":
            return ConfigMapping()
        if name == "AutoConfig":
            return self._auto_config()
        if name.startswith("Auto"):
            return self._auto_model(name) if name in self.tables.mappings else MISSING
        if name.endswith("_NAMES"):
            return {key: names[0] if len(names) == 1 else names for key, names in self.tables.tables.get(name, {}).items()}
        return ModelMapping(f"{name}_NAMES")

    def _auto_config(self) -> Class:
        auto = Class("AutoConfig", module="transformers")

        def for_model(machine: Machine, _: Class, model_type: str, *args: Any, **kwargs: Any) -> Any:
            return machine.call(self.config_class(model_type), list(args), kwargs)

        auto.namespace["for_model"] = ClassMethod(Native(for_model, "for_model", wants_machine=True))
        auto.namespace["from_pretrained"] = ClassMethod(
            Native(lambda _, *args, **kwargs: needs_repository("AutoConfig", args, kwargs), "from_pretrained", lazy=True)
        )
        auto.namespace["register"] = Native(lambda *_, **__: None, "register", lazy=True)
        return auto

    def _auto_model(self, name: str) -> Class:
        auto = Class(name, module="transformers")

        def from_config(_: Class, config: Any, *__: Any, **kwargs: Any) -> Any:
            return self.from_config(name, config, kwargs)

        for method in ("from_config", "_from_config"):
            auto.namespace[method] = ClassMethod(Native(from_config, method, lazy=True))
        auto.namespace["from_pretrained"] = ClassMethod(
            Native(lambda _, *args, **kwargs: needs_repository(name, args, kwargs), "from_pretrained", lazy=True)
        )
        auto.namespace["register"] = Native(lambda *_, **__: None, "register", lazy=True)
        auto.namespace["_model_mapping"] = ModelMapping(self.tables.mappings[name])
        return auto

    def config_class(self, model_type: str) -> Class:
        """The configuration class of a model type; KeyError where transformers knows none."""
        name = self.tables.configs[model_type]
        found = self.library.in_package(self.library.model_package(model_type), name)
        if found is MISSING:
            found = self.library.top_level(name)
        if not isinstance(found, Class):
            raise CannotTell(f"the configuration class {name}", "its source was not found")
        return found

    def model_class(self, model_type: str, name: str) -> Class:
        """A model class by name, looked for in its model type's folder first."""
        found = self.library.in_package(self.library.model_package(model_type), name)
        if found is MISSING:
            found = self.library.top_level(name)
        if not isinstance(found, Class):
            raise CannotTell(f"the class {name}", "its source was not found")
        return found

    def from_config(self, auto: str, config: Any, kwargs: dict[str, Any]) -> Any:
        """AutoModelX.from_config(config)."""
        if not isinstance(config, ConfigInstance):
            why = config.why if isinstance(config, Unknown) else f"{type(config).__name__}"
            raise CannotTell(f"{auto}.from_config()", f"its configuration is {why}")
        table = self.tables.mappings[auto]
        for model_type in self._types_of(config):
            if names := self.tables.classes(table, model_type):
                architectures = self.library.machine.getattr(config, "architectures", None) or []
                chosen = next((name for name in names if name in architectures), names[0])
                cls = self.model_class(model_type, chosen)
                return self.library.machine.call(cls, [self.fitting(cls, config)], model_keywords(kwargs))
        raise ValueError(f"Unrecognized configuration class {config.cls.name} for this kind of AutoModel: {auto}.")

    def _types_of(self, config: ConfigInstance) -> Iterator[str]:
        own = self.library.machine.getattr(config, "model_type", "")
        types = self.tables.types_of(config.cls.name)
        if own in types:
            yield own
        yield from (model_type for model_type in types if model_type != own)

    def fitting(self, cls: Class, config: ConfigInstance) -> ConfigInstance:
        """The configuration, or its text part where the class wants that one."""
        wanted = self.wanted_config(cls)
        if wanted is None or config.cls.subclass_of(wanted):
            return config
        inner = self.library.machine.call(self.library.machine.getattr(config, "get_text_config"), [])
        return inner if isinstance(inner, ConfigInstance) and inner.cls.subclass_of(wanted) else config

    def wanted_config(self, cls: Class) -> Class | None:
        """The configuration class that a model class names, by attribute or by annotation."""
        found = self.library.machine.getattr(cls, "config_class", None)
        return found if isinstance(found, Class) else None

    def type_of_class(self, cls: Any, table: str) -> str | None:
        """The model type under which a table lists a configuration class."""
        if not isinstance(cls, Class):
            return None
        return next((key for key in self.tables.types_of(cls.name) if key in self.tables.tables.get(table, {})), None)


class ConfigMappingForeign(Foreign):
    """CONFIG_MAPPING as a read-only mapping."""

    name = "_LazyConfigMapping"

    def __init__(self, api: AutoApi) -> None:
        self.api = api

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:
        """The class; KeyError where there is none."""
        return self.api.config_class(key)

    def contains(self, machine: Machine, value: Any, item: Any) -> Any:
        """Whether transformers knows the model type."""
        return item in self.api.tables.configs

    def iterate(self, machine: Machine, value: Any) -> Iterator[Any]:
        """The model types."""
        return iter(list(self.api.tables.configs))

    def length(self, machine: Machine, value: Any) -> int:
        """How many model types."""
        return len(self.api.tables.configs)

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """keys() and get()."""
        methods: dict[str, Callable[..., Any]] = {
            "keys": lambda: list(self.api.tables.configs),
            "get": lambda key, fallback=None: self.api.config_class(key) if key in self.api.tables.configs else fallback,
        }
        return Native(methods[name], name, lazy=True) if name in methods else super().getattr(machine, value, name, default)


class ModelMappingForeign(Foreign):
    """A MODEL_..._MAPPING as a read-only mapping."""

    name = "_LazyAutoMapping"

    def __init__(self, api: AutoApi) -> None:
        self.api = api

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:
        """The model class; KeyError where the table lists none."""
        model_type = self.api.type_of_class(key, value.table)
        if model_type is None:
            raise KeyError(str(key))
        return self.api.model_class(model_type, self.api.tables.classes(value.table, model_type)[0])

    def contains(self, machine: Machine, value: Any, item: Any) -> Any:
        """Whether the table lists the configuration class."""
        return self.api.type_of_class(item, value.table) is not None

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """get()."""
        if name == "get":
            return Native(
                lambda key, fallback=None: self.getitem(machine, value, key) if self.contains(machine, value, key) else fallback,
                name,
                lazy=True,
            )
        return super().getattr(machine, value, name, default)
