"""What custom code of the transformers 4 era runs on: its masks, which version 5 dropped, and its caches, which version 5 rebuilt.

Built-in classes keep the installed source as it stands: nothing here reaches a reading without code of its own.
"""

from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.dtypes import DType
from weighbridge.phantom import Tensor
from weighbridge.reading.glue.library import PRELUDE_BASE, Lazy, defines
from weighbridge.reading.glue.module_instance import ModuleInstance, named_buffers
from weighbridge.reading.python import MISSING, Instance, Namespace, SourceModule

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

FLOATING: Final = 2
HALF: Final = 16
PRELUDE_RUNTIME: Final = "transformers_v4_runtime"
MASKS: Final = "transformers.modeling_attn_mask_utils"
MASK_NAMES: Final = frozenset({
    "AttentionMaskConverter", "_prepare_4d_causal_attention_mask", "_prepare_4d_causal_attention_mask_for_sdpa",
    "_prepare_4d_attention_mask", "_prepare_4d_attention_mask_for_sdpa", "_create_4d_causal_attention_mask",
})  # fmt: skip
CACHES: Final = "transformers.cache_utils"
OUTPUTS: Final = "transformers.modeling_outputs"
NEWER_MASKS: Final = "transformers.masking_utils"
CACHE_CLASSES: Final = ("Cache", "DynamicCache", "DynamicLayer")

TOP_LEVEL: Final = (CACHES, OUTPUTS, "transformers.activations", "transformers.pytorch_utils", "transformers.modeling_rope_utils")
"""The read modules whose names `transformers` itself gives too."""


def install(runtime: "Runtime") -> None:
    """Give a reading of custom code what transformers 4 had."""
    library = runtime.library

    def prelude(name: str) -> Any:
        return library.prelude(PRELUDE_RUNTIME).lookup(library.machine, name)

    def helper(name: str) -> Any:
        return prelude(name) if name in MASK_NAMES else MISSING

    def complete(module: SourceModule) -> None:
        classes = [module.lookup(library.machine, name) for name in CACHE_CLASSES]
        if MISSING not in classes:
            library.machine.call(prelude("extend_caches"), classes)

    def overlay(module: str, name: str) -> Any:
        if module != "transformers":
            return MISSING
        sources = ((place, library.sources.find(place)) for place in TOP_LEVEL)
        found = next((place for place, source in sources if source is not None and defines(source.text, name)), None)
        return MISSING if found is None else library.find(found, name)

    def former_names(module: SourceModule) -> None:
        for name in ("create_causal_mask", "create_sliding_window_causal_mask", "create_chunked_causal_mask", "create_masks_for_generate"):
            create = module.lookup(library.machine, name)
            if create is not MISSING:
                module.namespace[name] = library.machine.call(prelude("with_former_names"), [create])

    library.machine.call(prelude("extend_models"), [library.prelude(PRELUDE_BASE).lookup(library.machine, "PreTrainedModel")])
    library.completions[NEWER_MASKS] = former_names
    library.overlays.append(overlay)
    library.presets[OUTPUTS] = {"dataclass": Lazy(lambda: prelude("dataclass"))}
    library.stand_ins[MASKS] = Namespace(MASKS, {}, lambda name: library.helper(MASKS, name))
    library.helpers.append(helper)
    library.completions[CACHES] = complete


def follow_precision(root: ModuleInstance) -> None:
    """Buffers made in the configuration's 16-bit type follow the weights: from_pretrained(dtype=...) writes its type there first."""
    config = root.fields.get("config")
    stated = config.fields.get("torch_dtype") if isinstance(config, Instance) else None
    name = stated.name if isinstance(stated, DType) else str(stated).removeprefix("torch.")
    for _, buffer, _ in named_buffers(root):
        if isinstance(buffer, Tensor) and buffer.dtype.kind == FLOATING and buffer.dtype.bits == HALF and buffer.dtype.name == name:
            buffer.default_dtype = True
