"""What every transformers model inherits, cut down to what decides parameters, ties and shapes. Interpreted text, never imported.

`glue` is the reader's own namespace. Version 5 states ties in `_tied_weights_keys` as target -> source; version 4 ties the output
embeddings to the input embeddings, wherever `tie_word_embeddings` is not false, and then asks every `_tie_weights` method.
"""

import glue
import torch
from torch import nn


class EmbeddingAccessMixin:
    _input_embed_layer = "embed_tokens"

    def _embedding_holders(self):
        yield self
        for name in ("embeddings", "model"):
            holder = getattr(self, name, None)
            if holder is not None:
                yield holder

    def get_input_embeddings(self):
        name = getattr(self, "_input_embed_layer", "embed_tokens")
        for holder in self._embedding_holders():
            found = getattr(holder, name, None)
            if found is not None:
                return found
        for name in ("language_model", "base_model"):
            inner = getattr(self, name, None)
            if inner is not None and inner is not self and hasattr(inner, "get_input_embeddings"):
                return inner.get_input_embeddings()
        raise NotImplementedError(f"`get_input_embeddings` of {self.__class__.__name__}")

    def set_input_embeddings(self, value):
        name = getattr(self, "_input_embed_layer", "embed_tokens")
        for holder in self._embedding_holders():
            if hasattr(holder, name):
                setattr(holder, name, value)
                return
        for name in ("language_model", "base_model"):
            inner = getattr(self, name, None)
            if inner is not None and inner is not self and hasattr(inner, "set_input_embeddings"):
                inner.set_input_embeddings(value)
                return
        raise NotImplementedError(f"`set_input_embeddings` of {self.__class__.__name__}")

    def get_output_embeddings(self):
        if not hasattr(self, "lm_head"):
            return None
        try:
            self.get_input_embeddings()
        except NotImplementedError:
            return None
        return self.lm_head

    def set_output_embeddings(self, new_embeddings):
        if getattr(self, "lm_head", None):
            self.lm_head = new_embeddings


class ModuleUtilsMixin:
    pass


class PushToHubMixin:
    pass


class PeftAdapterMixin:
    pass


class DistributedMixin:
    pass


class GenerationMixin:
    pass


class PreTrainedModel(nn.Module, EmbeddingAccessMixin, ModuleUtilsMixin, PushToHubMixin, PeftAdapterMixin, DistributedMixin):
    config_class = glue.config_class_from_annotation
    base_model_prefix = ""
    main_input_name = "input_ids"
    model_tags = None
    input_modalities = ("text",)
    is_parallelizable = False
    supports_gradient_checkpointing = False
    is_gradient_checkpointing = False
    generation_config = None
    _auto_class = None
    _no_split_modules = None
    _skip_keys_device_placement = None
    _keep_in_fp32_modules = None
    _keep_in_fp32_modules_strict = None
    _tied_weights_keys = None
    _keys_to_ignore_on_load_missing = None
    _keys_to_ignore_on_load_unexpected = None
    _keys_to_ignore_on_save = None
    _supports_sdpa = False
    _supports_flash_attn = False
    _supports_flash_attn_2 = False
    _supports_flex_attn = False
    _supports_attention_backend = False
    _supports_cache_class = False
    _supports_static_cache = False
    _can_compile_fullgraph = False
    _can_record_outputs = None
    _is_stateful = False
    _checkpoint_conversion_mapping = {}
    _tp_plan = None
    _ep_plan = None
    _pp_plan = None

    def __init__(self, config, *inputs, **kwargs):
        super().__init__()
        if not glue.is_config(config):
            raise TypeError(f"Parameter config in `{self.__class__.__name__}(config)` should be an instance of class `PreTrainedConfig`")
        self.config = config
        self.name_or_path = getattr(config, "name_or_path", "")
        self.kernel_config = None
        self.warnings_issued = {}
        glue.choose_implementations(self, config)

    @property
    def dtype(self):
        return glue.module_dtype(self)

    @property
    def device(self):
        return glue.module_device(self)

    @property
    def loss_function(self):
        return glue.loss_function(self)

    @loss_function.setter
    def loss_function(self, value):
        self._loss_function = value

    @property
    def base_model(self):
        return getattr(self, self.base_model_prefix, self) if self.base_model_prefix else self

    @property
    def dummy_inputs(self):
        return {"input_ids": torch.tensor([[7, 6, 0, 0, 1], [1, 2, 3, 0, 0], [0, 0, 0, 4, 5]])}

    @property
    def framework(self):
        return "pt"

    @property
    def is_loaded_in_8bit(self):
        return False

    @classmethod
    def _from_config(cls, config, **kwargs):
        return cls(config, **glue.model_keywords(kwargs))

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        glue.needs_repository(cls.__name__, args, kwargs)

    @classmethod
    def can_generate(cls):
        return False

    @classmethod
    def is_remote_code(cls):
        return False

    @classmethod
    def register_for_auto_class(cls, auto_class="AutoModel"):
        pass

    @classmethod
    def is_backend_compatible(cls):
        return cls._supports_attention_backend

    def post_init(self):
        self.all_tied_weights_keys = self.get_expanded_tied_weights_keys()
        for name, module in self.named_children():
            inner = getattr(module, "all_tied_weights_keys", None)
            if inner:
                self.all_tied_weights_keys.update({f"{name}.{target}": f"{name}.{source}" for target, source in inner.items()})
        self.init_weights()

    def init_weights(self):
        if glue.version_4_ties(self):
            self.tie_weights()
        else:
            self.tie_weights(recompute_mapping=False)

    def _initialize_weights(self, module, *args, **kwargs):
        pass

    def _init_weights(self, module):
        pass

    def initialize_weights(self):
        pass

    def get_expanded_tied_weights_keys(self, all_submodels=False):
        keys = self._tied_weights_keys
        if not isinstance(keys, dict) or not getattr(self.config, "tie_word_embeddings", False):
            return {}
        return glue.expand_ties(self, keys)

    def tie_weights(self, missing_keys=None, recompute_mapping=True):
        if not hasattr(self, "all_tied_weights_keys"):
            self.all_tied_weights_keys = self.get_expanded_tied_weights_keys()
        glue.tie(self, self.all_tied_weights_keys)
        if glue.version_4_ties(self):
            self._tie_as_version_4()

    def _tie_as_version_4(self):
        config = self.config.get_text_config(decoder=True) if hasattr(self.config, "get_text_config") else self.config
        if getattr(config, "tie_word_embeddings", True):
            output = self.get_output_embeddings()
            if output is not None:
                self._tie_or_clone_weights(output, self.get_input_embeddings())
        for module in glue.modules_with(self, "_tie_weights"):
            module._tie_weights()

    def _tie_or_clone_weights(self, output_embeddings, input_embeddings):
        output_embeddings.weight = input_embeddings.weight
        if hasattr(output_embeddings, "out_features") and hasattr(input_embeddings, "num_embeddings"):
            output_embeddings.out_features = input_embeddings.num_embeddings

    def _tie_embedding_weights(self, output_embeddings, input_embeddings):
        self._tie_or_clone_weights(output_embeddings, input_embeddings)

    def _tie_encoder_decoder_weights(self, *args, **kwargs):
        pass

    def tie_embeddings_and_encoder_decoder(self):
        pass

    def get_encoder(self, modality=None):
        return glue.find_part(self, ("encoder", "model.encoder", f"{self.base_model_prefix}.encoder"))

    def get_decoder(self):
        return glue.find_part(self, ("decoder", "model.decoder", "language_model", "model.language_model", f"{self.base_model_prefix}.decoder"))

    def set_decoder(self, decoder):
        self.decoder = decoder

    def num_parameters(self, only_trainable=False, exclude_embeddings=False):
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad or not only_trainable)

    def get_parameter_or_buffer(self, target):
        return glue.get_tensor(self, target)

    def resize_token_embeddings(self, *args, **kwargs):
        glue.cannot_tell("resize_token_embeddings()", "embeddings are resized while the model is built")

    def gradient_checkpointing_enable(self, *args, **kwargs):
        pass

    def gradient_checkpointing_disable(self):
        pass

    def _set_gradient_checkpointing(self, *args, **kwargs):
        pass

    def _backward_compatibility_gradient_checkpointing(self):
        pass

    def enable_input_require_grads(self):
        pass

    def add_model_tags(self, tags):
        pass

    def set_attn_implementation(self, *args, **kwargs):
        pass

    def prune_heads(self, heads_to_prune):
        pass

    def warn_if_padding_and_no_attention_mask(self, input_ids, attention_mask):
        pass

    def get_head_mask(self, head_mask, num_hidden_layers, is_attention_chunked=False):
        return [None] * num_hidden_layers if head_mask is None else head_mask

    def init_parallel_plans(self):
        pass


class PreTrainedAudioTokenizerBase(PreTrainedModel):
    base_model_prefix = "audio_tokenizer"
    main_input_name = "input_values"
