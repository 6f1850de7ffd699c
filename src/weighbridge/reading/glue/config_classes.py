"""What PreTrainedConfig's decorators and metaclass hooks do to a configuration class, done natively.

Version 5 makes every configuration class a dataclass that takes any keyword; version 4 writes `__init__` by hand. Both alias names
through `attribute_map`. Reads are noted, so that what nothing read can be told.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from weighbridge.base.errors import WeighError
from weighbridge.reading.python import MISSING, Class, ClassMethod, FieldSpec, Instance, Machine, Native, Property

BASE_NAMES: Final = frozenset({"PreTrainedConfig", "PretrainedConfig"})
REPLACED_METHODS: Final = ("__getattribute__", "__setattr__", "__init_subclass__")
VALIDATORS: Final = ("validate_architecture", "validate_layer_type")
CONFIG_CLASS: Final = "?config_class"
"""The attribute of a made __init__ that holds its class, for inspect.signature()."""
HETEROGENEOUS: Final = "_heterogeneity_spec"
GUARD: Final = "?guard"
"""The class attribute that keeps the __getattribute__ which only heterogeneous configurations need."""
SUB_CONFIGS: Final = "sub_configs_defaults"
VERSION_4_DEFAULTS: Final[dict[str, Any]] = {
    "pad_token_id": None, "bos_token_id": None, "eos_token_id": None, "tie_encoder_decoder": False, "tie_word_embeddings": True,
    "add_cross_attention": False, "is_decoder": False, "torchscript": False, "use_cache": True, "gradient_checkpointing": False,
    "use_bfloat16": False, "torch_dtype": None, "output_scores": False, "return_dict_in_generate": False, "max_length": 20,
    "min_length": 0, "do_sample": False, "num_beams": 1, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.0,
    "length_penalty": 1.0, "no_repeat_ngram_size": 0, "num_return_sequences": 1, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip
"""What a version-4 config answers and a version-5 config no longer does; custom code was written against the former."""


class ConfigInstance(Instance):
    """A configuration: aliases through attribute_map, and knows which of its attributes were read."""

    __slots__ = ("given", "lenient", "reads")
    translates: ClassVar[bool] = True

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.reads: set[str] = set()
        self.given: frozenset[str] = frozenset()
        self.lenient = False

    def translate(self, name: str) -> str:
        """The attribute that attribute_map names for `name`."""
        aliases = self.cls.find("attribute_map")
        return aliases.get(name, name) if type(aliases) is dict else name

    def assign(self, machine: Machine, name: str, value: Any) -> None:
        """Store; a configuration that differs by layer gets the guard on its attributes that transformers puts on all of them."""
        guard = self.cls.find(GUARD) if name == HETEROGENEOUS else MISSING
        if guard is not MISSING and self.cls.find("__getattribute__") is MISSING:
            self.cls = Class(self.cls.name, [self.cls], {"__getattribute__": guard}, self.cls.module)
        super().assign(machine, name, value)

    def lookup(self, name: str) -> Any:
        """The value, noted as read; for custom code also what only version 4 had."""
        value = self.fields.get(name, MISSING)
        if value is not MISSING:
            self.reads.add(name)
            return value
        if self.lenient and self.cls.find(name) is MISSING:
            rope = self.fields.get("rope_parameters")
            if name == "rope_theta" and isinstance(rope, dict) and name in rope:
                return rope[name]
            return VERSION_4_DEFAULTS.get(name, MISSING)
        return MISSING


def config_fields(cls: Class) -> dict[str, Any]:
    """Field name -> default, FieldSpec or MISSING, base classes first, as dataclasses order them."""
    found: dict[str, Any] = {}
    for owner in reversed(cls.mro):
        found.update(owner.fields or {})
    return found


def _own_fields(cls: Class) -> dict[str, Any]:
    """The annotated class attributes that are not ClassVar."""
    names = (
        name
        for name, annotation in cls.annotations.items()
        if not str(annotation).lstrip("'\"").startswith(("ClassVar", "typing.ClassVar"))
    )
    return {name: cls.namespace.get(name, MISSING) for name in names}


class ConfigHooks:
    """The hooks of one read; `spec_class` gives the interpreted SubConfigSpec."""

    def __init__(self, spec_class: Callable[[], Any], lenient: bool) -> None:
        self.spec_class, self.lenient = spec_class, lenient
        self.created: list[ConfigInstance] = []
        self.dataclass_bases: list[Class] = []
        self.base = Class("PushToHubMixin", instance_type=ConfigInstance, module="transformers.utils")
        self.base.hook = self.made
        self.base.namespace["push_to_hub"] = Native(lambda *_, **__: None, "push_to_hub", lazy=True)
        self.base.namespace["__init_subclass__"] = ClassMethod(Native(lambda *_, **__: None, "__init_subclass__", lazy=True))
        self.base.constructor = self.construct

    def construct(self, machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """Make a configuration and run its __init__, then the checks its class makes of an architecture."""
        config = cls.instance_type(cls)
        assert isinstance(config, ConfigInstance)
        config.lenient = self.lenient
        config.given = frozenset(kwargs or ())
        self.created.append(config)
        initializer = cls.find("__init__")
        if initializer is not MISSING:
            machine.call(initializer, [config, *args], kwargs)
        if self.is_dataclass(cls) and not self.lenient:
            self._validate(machine, config)
        config.reads.clear()
        return config

    def _validate(self, machine: Machine, config: ConfigInstance) -> None:
        for name in VALIDATORS:
            if config.cls.find(name) is not MISSING:
                try:
                    machine.call(machine.getattr(config.cls, name), [config])
                except WeighError as error:
                    machine.note(f"{config.cls.name}.{name} could not be run: {error}")

    def made(self, machine: Machine, cls: Class, keywords: Any) -> None:
        """Prepare a new configuration class."""
        if cls.name in BASE_NAMES and not self.is_dataclass(cls):
            for name in REPLACED_METHODS:
                cls.namespace.pop(name, None)
            for owner in cls.mro:
                if "__getattribute__" in owner.namespace:
                    cls.namespace[GUARD] = owner.namespace.pop("__getattribute__")
                    owner.cache.clear()
            cls.cache.clear()
            if "__init__" not in cls.namespace:
                self.dataclass_bases.append(cls)
        if not self.is_dataclass(cls):
            return
        own = _own_fields(cls)
        cls.fields = own
        specs = cls.namespace.get(SUB_CONFIGS)
        if type(specs) is dict and specs:
            cls.namespace[SUB_CONFIGS] = {name: self._as_spec(machine, value) for name, value in specs.items()}
        for name, value in own.items():
            if type(value) is FieldSpec:
                cls.namespace.pop(name, None)
                if value.default is not MISSING:
                    cls.namespace[name] = value.default
        cls.cache.clear()
        if "__init__" not in cls.namespace:
            cls.namespace["__init__"] = _initializer(cls)

    def is_dataclass(self, cls: Class) -> bool:
        """Whether the class takes its keywords as a dataclass does: all of version 5's, none of version 4's."""
        return any(base in cls.mro for base in self.dataclass_bases)

    def _as_spec(self, machine: Machine, value: Any) -> Any:
        spec_class = self.spec_class()
        if isinstance(value, Instance) and isinstance(spec_class, Class) and value.cls.subclass_of(spec_class):
            return value
        return machine.call(spec_class, [], {"config_class": value})


def _initializer(cls: Class) -> Native:
    """Take every field by keyword, hand the rest to __post_init__."""

    def initialize(machine: Machine, config: Any, *args: Any, **kwargs: Any) -> None:
        if args:
            raise TypeError(f"{cls.name} accepts only keyword arguments")
        fields = config_fields(cls)
        for name, spec in fields.items():
            value = kwargs.get(name, MISSING) if name in kwargs else _default(machine, cls, name, spec)
            if value is not MISSING:
                machine.setattr(config, name, value)
        machine.call(machine.getattr(config, "__post_init__"), [], {name: value for name, value in kwargs.items() if name not in fields})

    native = Native(initialize, f"{cls.name}.__init__", lazy=True, wants_machine=True)
    native.attributes = {CONFIG_CLASS: cls}
    return native


def _default(machine: Machine, cls: Class, name: str, spec: Any) -> Any:
    if type(spec) is FieldSpec:
        spec = machine.call(spec.factory, []) if spec.factory is not MISSING else spec.default
    if spec is MISSING:
        spec = cls.find(name)
    if type(spec) is Property:
        return MISSING
    if spec is MISSING:
        raise TypeError(f"Missing required field - '{name}'")
    return spec
