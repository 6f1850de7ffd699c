"""transformers' helpers that are not read: decorators that wrap nothing, questions about the machine, logging, and the base model.

This is the reviewed list: what is named here is known to leave a model's parameters alone. Everything else stays unknown.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from weighbridge.base.dtypes import FLOAT32
from weighbridge.phantom import Tensor
from weighbridge.reading.glue.library import PRELUDE_BASE, PRELUDE_VERSION_4, Lazy, Library
from weighbridge.reading.python import MISSING, Class, FieldSpec, Namespace, Native, Property, Unknown

TRUE_QUESTIONS: Final = re.compile(r"is_torch_available|is_torch_greater_or_equal\w*")
FALSE_QUESTIONS: Final = re.compile(
    r"(is|has)_\w*(available|compiling|exporting|enabled|tracing|proxy|at_least|requested|or_equal\w*|platform|managed_module)"
    r"|is_flash_attn_\w+|flash_attn_supports_top_left_mask|is_tracing|is_jit_tracing|is_fake_tensor|is_timm_config_dict|is_timm_local_checkpoint|is_dtensor"
)
BARE_DECORATORS: Final = frozenset({
    "can_return_tuple", "capture_outputs", "merge_with_config_defaults", "check_model_inputs", "accepts_precomputed_kwargs",
    "compile_compatible_method_lru_cache", "copy_func", "dynamic_rope_update",
    "auto_docstring", "use_experts_implementation", "filter_out_non_signature_kwargs", "strict", "dataclass_transform",
    "compile_friendly_flex_attention",
})  # fmt: skip
"""Used as `@name` or as `@name(...)`: what they decorate is returned as it is."""
DECORATOR_MAKERS: Final = frozenset({  # always used as `@name(...)`
    "deprecate_kwarg", "force_accelerate_hooks", "select_hidden_states", "use_kernel_forward_from_hub", "use_kernelized_func",
    "use_kernel_func_from_hub_with_fallback", "use_kernel_func_from_hub", "add_start_docstrings", "requires", "deprecated",
    "add_start_docstrings_to_model_forward", "add_code_sample_docstrings", "add_end_docstrings", "replace_return_docstrings",
})  # fmt: skip
SILENT: Final = frozenset(
    {"requires_backends", "torch_compilable_check", "check_torch_load_is_safe", "warn_once", "lazy_load_kernel", "get_kernel"}
)
"""Calls with no result that matters."""
INERT: Final = frozenset({
    "TransformersKwargs", "Unpack", "FlashAttentionKwargs", "LossKwargs", "KwargsForCausalLM", "DUMMY_INPUTS", "DUMMY_MASK",
    "CONFIG_NAME", "WEIGHTS_NAME",
    "GenerationMode", "CompileConfig", "LogitsProcessorList", "StoppingCriteriaList", "LogitsProcessor", "StoppingCriteria", "BaseStreamer",
    "BlockMask", "ContextManagers", "hf_api", "cached_file", "custom_object_save", "ProcessingKwargs", "AllKwargsForChatTemplate",
    "WeightRenaming", "convert_and_load_state_dict_in_model", "get_model_conversion_mapping", "LoadStateDictConfig", "safe_open",
    "_get_resolved_checkpoint_files", "log_state_dict_report", "storage_ptr", "storage_size", "resolve_revision",
    "SpecificPreTrainedModelType",
    "BatchFeature", "BatchEncoding", "ModelCard", "PretrainedTokenizer", "PreTrainedTokenizer", "PreTrainedTokenizerBase", "ImageProcessor",
    "AutoProcessor", "AutoTokenizer", "AutoImageProcessor", "AutoFeatureExtractor", "AutoVideoProcessor",
})  # fmt: skip
"""Names that are only mentioned while a model is built: annotations, file names, parts of generation, what prepares inputs."""
PRELUDE_NAMES: Final = frozenset(
    {"PreTrainedModel", "EmbeddingAccessMixin", "ModuleUtilsMixin", "PreTrainedAudioTokenizerBase", "GenerationMixin"}
)
ROPE: Final = "transformers.modeling_rope_utils"
RATES: Final = "ROPE_INIT_FUNCTIONS"
VERSION_4_NESTED: Final = frozenset({"CLIPVisionModel", "CLIPTextModel", "SiglipVisionModel", "SiglipTextModel"})
"""Classes that version 5 flattened by one level, which code of version 4 looks inside."""


TABLES_OF_NUMBERS: Final[dict[str, tuple[str, Callable[..., Tensor]]]] = {
    "transformers.models.videomae.modeling_videomae": (
        "get_sinusoid_encoding_table",
        lambda rows, width: Tensor((1, rows, width), FLOAT32),
    ),
}
"""Functions that work out a million numbers one by one, of which only the shape counts: module -> name and the tensor it gives."""


def identity(value: Any = None, *_: Any, **__: Any) -> Any:
    """What is decorated, as it is."""
    return value


def bare(name: str) -> Native:
    """A decorator that may stand with or without arguments."""

    def decorate(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and not isinstance(args[0], str):
            return args[0]
        return Native(identity, name, lazy=True)

    return Native(decorate, name, lazy=True)


def logger(name: str) -> Namespace:
    """A logger that says nothing."""
    return Namespace(name, {}, lambda method: Native(lambda *_, **__: None, f"{name}.{method}", lazy=True))


def fixed(name: str, value: Any) -> Native:
    """A function of one answer."""
    return Native(lambda *_, **__: value, name, lazy=True)


def validated(*_: Any, default: Any = MISSING, default_factory: Any = MISSING, **__: Any) -> Any:
    """A field with a validator: its default is all that counts here."""
    if default is not MISSING or default_factory is not MISSING:
        return FieldSpec(default, default_factory)
    return Native(validated, "validated_field", lazy=True)


def validators(name: str) -> Any:
    """A name of a module of field validators."""
    return MISSING if name.startswith("__") else bare("strict") if name == "strict" else Native(validated, name, lazy=True)


class TransformersHelpers:
    """The helpers of one read, bound to its library."""

    def __init__(self, library: Library, config_base: Class, *, custom: bool) -> None:
        self.library, self.config_base, self.custom = library, config_base, custom
        self.generation_config: Class | None = None
        class_property = Native(lambda getter: Property(getter, on_class=True), "classproperty", lazy=True)
        library.presets["transformers.configuration_utils"] = {"classproperty": class_property}
        for module, (name, make) in TABLES_OF_NUMBERS.items():
            library.presets[module] = {name: Native(make, name)}
        if custom:
            library.presets["transformers.configuration_utils"]["PretrainedConfig"] = Lazy(self.version_4_config)
            library.presets[ROPE] = {RATES: Lazy(self.version_4_rates)}

    def helper(self, name: str) -> Any:
        """A helper by name, whichever module it is imported from."""
        if name in PRELUDE_NAMES:
            return self.library.prelude(PRELUDE_BASE).lookup(self.library.machine, name)
        if name in self.TABLE:
            return self.TABLE[name](self)
        if TRUE_QUESTIONS.fullmatch(name):
            return fixed(name, value=True)
        if FALSE_QUESTIONS.fullmatch(name):
            return fixed(name, value=False)
        if name in BARE_DECORATORS:
            return bare(name)
        if name in DECORATOR_MAKERS:
            return Native(lambda *_, **__: Native(identity, name, lazy=True), name, lazy=True)
        if name in SILENT:
            return fixed(name, value=None)
        if name in INERT:
            return Unknown(name, "stub", self.library.machine.place)
        return MISSING

    def overlay(self, module: str, name: str) -> Any:
        """The configuration base: read from the installed source, or version 4's for custom code."""
        if name == "PreTrainedConfig" and module == "transformers":
            return self.library.find("transformers.configuration_utils", name)
        if name == "PretrainedConfig" and module == "transformers":
            return self.version_4_config() if self.custom else self.library.find("transformers.configuration_utils", name)
        if self.custom and module == "transformers" and name in VERSION_4_NESTED:
            return self.library.prelude(PRELUDE_VERSION_4).lookup(self.library.machine, name)
        if module == "transformers.utils.type_validators":
            return validators(name)
        if (
            module in {"transformers.generation", "transformers.generation.configuration_utils", "transformers"}
            and name == "GenerationConfig"
        ):
            return self._generation_config()
        return MISSING

    def version_4_config(self) -> Any:
        """PretrainedConfig as custom code of the version-4 era expects it."""
        return self.library.prelude(PRELUDE_VERSION_4).lookup(self.library.machine, "PretrainedConfig")

    def version_4_rates(self) -> dict[str, Any]:
        """The table of rotary frequencies with the plain kind, which version 5 moved into the models."""
        machine = self.library.machine
        rates = self.library.real(ROPE).get(machine, RATES)
        return {**rates, "default": self.library.prelude(PRELUDE_VERSION_4).lookup(machine, "default_rates")}

    def _generation_config(self) -> Class:
        if self.generation_config is None:
            config = self.generation_config = Class("GenerationConfig", module="transformers")
            config.namespace["__init__"] = Native(lambda config, *_, **kwargs: config.fields.update(kwargs), "__init__", lazy=True)
            for name in ("from_model_config", "from_dict", "from_pretrained"):
                config.namespace[name] = fixed(name, value=None)
            config.namespace["_get_default_generation_params"] = fixed("_get_default_generation_params", value={})
        return self.generation_config

    TABLE: Final[dict[str, Callable[["TransformersHelpers"], Any]]] = {
        "logging": lambda self: Namespace(
            "logging", {}, lambda name: fixed(name, value=logger("logger")) if name == "get_logger" else fixed(name, value=None)
        ),
        "PushToHubMixin": lambda self: self.config_base,
        "torch_int": lambda self: self.library.machine.builtins["int"],
        "torch_float": lambda self: self.library.machine.builtins["float"],
        "OptionalDependencyNotAvailable": lambda self: self.library.machine.builtins["ImportError"],
    }
