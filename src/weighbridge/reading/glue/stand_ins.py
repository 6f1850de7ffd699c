"""Third-party packages that model code imports: what of them leaves parameters alone, or is simple enough to stand in for."""

import re
from typing import TYPE_CHECKING, Any, Final

from weighbridge.reading.glue.config_classes import CONFIG_CLASS, config_fields
from weighbridge.reading.glue.numpy_api import NumpyApi
from weighbridge.reading.glue.transformers_api import validators
from weighbridge.reading.python import MISSING, Class, Machine, Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

INERT_PACKAGES: Final = (
    "PIL",
    "requests",
    "tqdm",
    "cv2",
    "torchvision.transforms",
    "torchvision.transforms.functional",
    "safetensors",
    "huggingface_hub",
    "tokenizers",
    "sentencepiece",
    "tiktoken",
)
"""Packages a model mentions but is not built from."""
VERSION_PARTS: Final = 4


def parse_version(text: Any) -> Any:
    """A version as something that compares: a tuple of numbers."""
    if not isinstance(text, str) or len(text) > 100:
        return Unknown("a version", "stub")
    return tuple(int(part) for part in re.findall(r"\d+", text)[:VERSION_PARTS])


def pair(count: int) -> Native:
    """Timm's to_2tuple and its kin."""

    def repeat(machine: Machine, value: Any) -> Any:
        return tuple(machine.as_list(value)) if isinstance(value, (tuple, list)) else (value,) * count

    return Native(repeat, f"to_{count}tuple", lazy=True, wants_machine=True)


def _module_class(runtime: "Runtime", name: str, module: str, fields: tuple[str, ...]) -> Class:
    """A module without parameters that keeps its arguments."""
    cls = Class(name, [runtime.modules.module], module=module)

    def initialize(machine: Machine, instance: Any, *args: Any, **kwargs: Any) -> None:
        for key, value in [*zip(fields, args, strict=False), *kwargs.items()]:
            machine.setattr(instance, key, value)

    cls.namespace["__init__"] = Native(initialize, "__init__", lazy=True, wants_machine=True)
    return cls


def stand_ins(runtime: "Runtime") -> dict[str, Namespace]:
    """The packages of one reading, by module name."""
    numpy = NumpyApi(runtime).namespace
    found: dict[str, Namespace] = {name: _inert_package(name) for name in INERT_PACKAGES}
    found["numpy"] = numpy
    found["numpy.random"] = numpy.entries["random"]
    found["huggingface_hub.dataclasses"] = Namespace("huggingface_hub.dataclasses", {}, validators)
    version = Namespace("packaging.version", {name: Native(parse_version, name, lazy=True) for name in ("parse", "Version")})
    found["packaging.version"] = version
    found["packaging"] = Namespace("packaging", {"version": version})
    timm = Namespace("timm.layers", _timm(runtime))
    found["timm.layers"] = found["timm.models.layers"] = timm
    rearranging = {name: _module_class(runtime, name, "einops.layers.torch", ("pattern",)) for name in ("Rearrange", "Reduce")}
    found["einops.layers.torch"] = Namespace("einops.layers.torch", dict(rearranging))
    einops_layers = Namespace("einops.layers", {"torch": found["einops.layers.torch"]})
    found["einops"] = Namespace("einops", {"layers": einops_layers}, lambda name: _einops(runtime, name))
    found["torchvision"] = Namespace("torchvision", {"transforms": found["torchvision.transforms"]})
    found["addict"] = Namespace("addict", {}, lambda name: runtime.library.prelude("addict").lookup(runtime.machine, name))
    runtime.machine.modules["inspect"] = _inspect(runtime)
    return found


def _inspect(runtime: "Runtime") -> Namespace:
    """inspect, which also knows the __init__ that a configuration class is given."""
    plain = runtime.machine.stdlib("inspect")

    def signature(machine: Machine, function: Any, *args: Any, **kwargs: Any) -> Any:
        cls = function.attributes.get(CONFIG_CLASS) if isinstance(function, Native) and function.attributes else None
        if cls is None:
            return machine.call(machine.getattr(plain, "signature"), [function, *args], kwargs)
        parameters = {name: Unknown("a parameter", "stub") for name in ("self", *config_fields(cls))}
        return Namespace("signature", {"parameters": parameters})

    return Namespace("inspect", {"signature": Native(signature, "signature", lazy=True, wants_machine=True)}, lambda name: _of(plain, name))


def _of(namespace: Namespace, name: str) -> Any:
    return namespace.get(name)


def _timm(runtime: "Runtime") -> dict[str, Any]:
    entries: dict[str, Any] = {f"to_{count}tuple": pair(count) for count in (2, 3, 4)}
    entries["DropPath"] = _module_class(runtime, "DropPath", "timm.layers", ("drop_prob", "scale_by_keep"))
    entries.update(
        {name: Native(lambda tensor, *_, **__: tensor, name, lazy=True) for name in ("trunc_normal_", "lecun_normal_", "trunc_normal_tf_")}
    )
    return entries


def _einops(runtime: "Runtime", name: str) -> Any:
    """rearrange() and the like are forward-time; while a model is built their results are unknown tensors."""
    return MISSING if name.startswith("__") else runtime.operations.native(f"einops_{name}", f"einops.{name}")


def _inert_package(name: str) -> Namespace:
    return Namespace(name, {}, lambda attribute: _inert(name, attribute))


def _inert(package: str, name: str) -> Any:
    return MISSING if name.startswith("__") else Unknown(f"{package}.{name}", "stub")
