"""transformers at forward time: the decorators that do something there, attention functions, losses and experts.

What is short and read as it stands is not repeated here: masks, caches, SDPA attention, losses and grouped experts are interpreted
from the installed source.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.dtypes import BOOL
from weighbridge.phantom import OPERATIONS, Tensor, current
from weighbridge.reading.glue.contexts import autocast_mode, inert_mode
from weighbridge.reading.glue.module_instance import ModuleInstance, walk
from weighbridge.reading.python import MISSING, Class, Function, Instance, Machine, Namespace, Native

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

DEFAULTED: Final = ("use_cache", "vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio")
"""Arguments that merge_with_config_defaults fills in (transformers/utils/generic.py)."""
CAPTURED: Final = ("output_hidden_states", "output_attentions", "output_router_logits")
ABSENT: Final = object()
GENERIC: Final = "transformers.utils.generic"
CAPTURING: Final = "transformers.utils.output_capturing"


def unwrapped(function: Any) -> Any:
    """The interpreted function under our decorators."""
    while isinstance(function, Native) and function.attributes and "__wrapped__" in function.attributes:
        function = function.attributes["__wrapped__"]
    return function


def wrapping(function: Any, run: Callable[[Machine, list[Any], dict[str, Any]], Any]) -> Native:
    """A native in a function's place that still tells its name and what it wraps."""
    name = getattr(unwrapped(function), "name", "function")
    native = Native(lambda machine, args, kwargs: run(machine, args, dict(kwargs) if kwargs else {}), name, lazy=True, raw=True)
    native.attributes = {"__wrapped__": function}
    return native


def parameters_of(function: Any) -> tuple[list[str], bool]:
    """Names of a function's parameters and whether it takes any keyword."""
    own = unwrapped(function)
    if not isinstance(own, Function):
        return [], True
    return [*own.code.positional, *own.code.keyword_only], own.code.keywords is not None


def argument(function: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a call gives for one parameter, or its default."""
    if name in kwargs:
        return kwargs[name]
    own = unwrapped(function)
    names = own.code.positional if isinstance(own, Function) else []
    if name in names:
        place = names.index(name)
        if place < len(args):
            return args[place]
        offset = place - (len(names) - len(own.defaults))
        return own.defaults[offset] if offset >= 0 else None
    return own.keyword_defaults.get(name) if isinstance(own, Function) else None


def decorator(make: Callable[[Any], Native]) -> Native:
    """A decorator that stands with or without arguments."""

    def decorate(*args: Any, **_: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Function | Native):
            return make(args[0])
        return Native(lambda function, *_, **__: make(function), "decorator", lazy=True)

    return Native(decorate, "decorator", lazy=True)


class ForwardTransformers:
    """The forward-time names of one reading."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime, self.library = runtime, runtime.library
        self.attention: Instance | None = None
        self.names: dict[str, Callable[[], Any]] = {
            "can_return_tuple": lambda: decorator(self.can_return_tuple),
            "capture_outputs": lambda: decorator(self.capture_outputs),
            "merge_with_config_defaults": lambda: decorator(self.merge_defaults),
            "check_model_inputs": lambda: decorator(lambda function: self.capture_outputs(self.merge_defaults(function))),
            "deprecate_kwarg": lambda: Native(self.deprecate, "deprecate_kwarg", lazy=True),
            "select_hidden_states": lambda: Native(self.select_hidden_states, "select_hidden_states", lazy=True),
            "OutputRecorder": lambda: self.library.real(self.capturing()).lookup(self.library.machine, "OutputRecorder"),
            "maybe_autocast": lambda: Native(maybe_autocast, "maybe_autocast", lazy=True),
            "GeneralInterface": lambda: self.library.real(GENERIC).lookup(self.library.machine, "GeneralInterface"),
            "use_experts_implementation": lambda: self.library.get("transformers.integrations.moe", "use_experts_implementation"),
            "ALL_EXPERTS_FUNCTIONS": lambda: self.library.get("transformers.integrations.moe", "ALL_EXPERTS_FUNCTIONS"),
            "ALL_ATTENTION_FUNCTIONS": self.attention_functions,
            "AttentionInterface": lambda: self.attention_functions().cls,
            "ALL_LAYERNORM_LAYERS": list,
            "ModelOutput": lambda: self.library.prelude("transformers_outputs").lookup(self.library.machine, "ModelOutput"),
            "slice_logits_to_keep": lambda: Native(slice_logits, "slice_logits_to_keep", lazy=True, wants_machine=True),
        }
        self.library.helpers.append(self.helper)
        runtime.machine.modules["contextvars"] = Namespace("contextvars", {"ContextVar": context_variable()})
        runtime.prelude.namespace.entries["loss_function"] = Native(self.loss_function, "loss_function", lazy=True, wants_machine=True)

    def helper(self, name: str) -> Any:
        """A name, whichever module it is imported from."""
        make = self.names.get(name)
        return MISSING if make is None else make()

    # ------------------------------------------------------------------ decorators
    def can_return_tuple(self, function: Any) -> Native:
        """The caller's return_dict never reaches the function unless it takes it: our callers want the output object."""
        names, _ = parameters_of(function)
        takes = "return_dict" in names

        def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
            if not takes:
                kwargs.pop("return_dict", None)
            return machine.call(function, args, kwargs)

        return wrapping(function, run)

    def capture_outputs(self, function: Any) -> Native:
        """Outputs of layers are gathered by hooks only where they are asked for; then transformers' own text does it."""
        real: list[Any] = []

        def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
            config = args[0].fields.get("config") if isinstance(args[0], ModuleInstance) else None
            asked = [kwargs.get(name, machine.getattr(config, name, None) if config is not None else None) for name in CAPTURED]
            if not any(value is not None and machine.truth(value) for value in asked):
                kwargs.pop("return_dict", None)
                for name in CAPTURED:
                    if name not in parameters_of(function)[0]:
                        kwargs.pop(name, None)
                return machine.call(function, args, kwargs)
            if not real:
                decorate = self.library.real(self.capturing()).lookup(machine, "capture_outputs")
                real.append(machine.call(decorate, [function]))
            self._tell_recorders(machine, args[0])
            return machine.call(real[0], args, kwargs)

        return wrapping(function, run)

    def capturing(self) -> str:
        """The module that captures outputs; older versions keep it among the generic helpers."""
        return CAPTURING if self.library.sources.find(CAPTURING) is not None else GENERIC

    def _tell_recorders(self, machine: Machine, module: ModuleInstance) -> None:
        """The registry in which PreTrainedModel's own __init__ enters what each class can record."""
        registry = self.library.real(self.capturing()).lookup(machine, "_CAN_RECORD_REGISTRY")
        if registry is MISSING:
            return
        for _, part in walk(module, seen=set()):
            recorded = machine.getattr(part, "_can_record_outputs", None)
            if recorded is not None:
                machine.setitem(registry, part, recorded)

    def select_hidden_states(self, selection: Any) -> Native:
        """The hidden states that a method uses are those it asks its submodels for: an argument's value, or what a function says."""

        def decorate(function: Any, *_: Any) -> Native:
            def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
                if not kwargs.get("output_hidden_states"):
                    named = isinstance(selection, str)
                    found = argument(function, selection, args, kwargs) if named else machine.call(selection, [args[0]])
                    kwargs["output_hidden_states"] = found
                return machine.call(function, args, kwargs)

            return wrapping(function, run)

        return Native(decorate, "select_hidden_states", lazy=True)

    def merge_defaults(self, function: Any) -> Native:
        """Arguments that were not given come from the configuration."""
        names, any_keyword = parameters_of(function)

        def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
            module = args[0]
            config = module.fields.get("config")
            for name in DEFAULTED:
                place = names.index(name) if name in names else None
                given = args[place] if place is not None and place < len(args) else kwargs.get(name)
                value = machine.getattr(config, name, None) if given is None else given
                if value is None or (place is None and not any_keyword):
                    continue
                if (
                    name == "use_cache"
                    and value is not False
                    and module.fields.get("gradient_checkpointing") is True
                    and current().grad_enabled
                ):
                    value = False
                if place is not None and place < len(args):
                    args[place] = value
                else:
                    kwargs[name] = value
            causal = kwargs.get("is_causal", machine.getattr(config, "is_causal", None))
            if causal is not None and any_keyword:
                kwargs["is_causal"] = causal
            return machine.call(function, args, kwargs)

        return wrapping(function, run)

    def deprecate(self, old_name: str, *_: Any, new_name: str | None = None, **__: Any) -> Native:
        """An argument under its old name."""

        def decorate(function: Any, *_: Any) -> Native:
            def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
                if old_name in kwargs:
                    value = kwargs.pop(old_name)
                    if new_name is not None and new_name not in kwargs:
                        kwargs[new_name] = value
                return machine.call(function, args, kwargs)

            return wrapping(function, run)

        return Native(decorate, "deprecate_kwarg", lazy=True)

    # ------------------------------------------------------------------ attention, losses
    def attention_functions(self) -> Instance:
        """ALL_ATTENTION_FUNCTIONS: SDPA as its source has it, flash attention natively; eager is each model's own."""
        if self.attention is None:
            cls = Class("AttentionInterface", module="transformers.modeling_utils")
            functions: dict[str, Any] = {name: Native(flash_attention, name, lazy=True) for name in FLASH_NAMES}

            def find(_self: Any, key: Any, default: Any = ABSENT) -> Any:
                if key == "sdpa":
                    return self.library.get("transformers.integrations.sdpa_attention", "sdpa_attention_forward")
                if key in functions:
                    return functions[key]
                if default is ABSENT:
                    raise KeyError(str(key))
                return default

            for name in ("__getitem__", "get", "get_interface"):
                cls.namespace[name] = Native(
                    find if name == "__getitem__" else lambda own, key, default=None: find(own, key, default), name, lazy=True
                )
            cls.namespace["__contains__"] = Native(lambda _self, key: key == "sdpa" or key in functions, "__contains__", lazy=True)
            for name in ("valid_keys", "keys"):
                cls.namespace[name] = Native(lambda _self: ["sdpa", *functions], name, lazy=True)
            cls.namespace["register"] = Native(lambda _self, key, value: functions.__setitem__(key, value), "register", lazy=True)
            cls.namespace["__setitem__"] = cls.namespace["register"]
            self.attention = Instance(cls)
        return self.attention

    def loss_function(self, machine: Machine, module: ModuleInstance) -> Any:
        """The loss that transformers picks: by the configuration's loss_type, else by the class's name."""
        for name in ("_loss_function", "loss_function"):  # the setter's, or a module of that name in code of version 4
            own = module.lookup(name)
            if own is not MISSING and own is not None:
                return own
        losses = self.library.get("transformers.loss.loss_utils", "LOSS_MAPPING")
        kind = machine.getattr(module, "loss_type", None)
        if kind is None and (config := module.fields.get("config")) is not None:
            kind = machine.getattr(config, "loss_type", None)
        if kind is None:
            kind = next((key for key in sorted(losses, key=len, reverse=True) if re.search(re.escape(key), module.cls.name)), None)
        return losses.get(kind) or losses["ForCausalLM"]


def context_variable() -> Class:
    """contextvars.ContextVar: one value at a time is all that a single thread of interpretation has."""
    cls = Class("ContextVar", module="contextvars")

    def initialize(variable: Instance, _name: Any, *, default: Any = MISSING) -> None:
        variable.fields["value"] = default

    def get(variable: Instance, default: Any = MISSING) -> Any:
        found = variable.fields["value"]
        found = default if found is MISSING else found
        if found is MISSING:
            raise LookupError("ContextVar")
        return found

    def put(variable: Instance, value: Any) -> list[Any]:
        before, variable.fields["value"] = variable.fields["value"], value
        return [before]

    def reset(variable: Instance, token: list[Any]) -> None:
        variable.fields["value"] = token[0]

    for name, function in (("__init__", initialize), ("get", get), ("set", put), ("reset", reset)):
        cls.namespace[name] = Native(function, name, lazy=True)
    return cls


FLASH_NAMES: Final = ("flash_attention_2", "flash_attention_3", "flash_attention_4")


def flash_attention(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, is_causal: Any = None, **options: Any) -> Any:
    """The flash-attn package's kernel on (batch, heads, tokens, width): no mask, output by tokens first."""
    causal = True if is_causal is None else bool(is_causal)
    scaled = OPERATIONS["scaled_dot_product_attention"]
    out = scaled(query, key, value, None, options.get("dropout", 0.0) or 0.0, causal, scale=options.get("scaling"), enable_gqa=True)
    return OPERATIONS["transpose"](out, 1, 2), None


def maybe_autocast(*args: Any, enabled: Any = True, dtype: Any = None, **_: Any) -> Any:
    """Autocast, unless it is off and to be switched off."""
    del args
    if current().autocast is None and enabled is not True:
        return inert_mode()
    return autocast_mode(dtype=dtype, enabled=enabled)


def slice_logits(machine: Machine, hidden_states: Tensor, logits_to_keep: Any = 0) -> Any:
    """The positions whose logits are wanted: the last so many (0: all), or those that a tensor names."""
    if isinstance(logits_to_keep, Tensor):
        if len(logits_to_keep.shape) == 2 and logits_to_keep.dtype is not BOOL:
            return OPERATIONS["take_along_dim"](hidden_states, OPERATIONS["unsqueeze"](logits_to_keep, -1), 1)
        whole = len(logits_to_keep.shape) == 2
        return machine.getitem(hidden_states, logits_to_keep if whole else (slice(None), logits_to_keep, slice(None)))
    return machine.getitem(hidden_states, (slice(None), slice(-logits_to_keep, None), slice(None)))
