"""The configuration base that custom code of the transformers 4 era was written against. Interpreted text, never imported.

Facts of transformers 4: an absent key reads as the default below; `tie_word_embeddings` defaults to true; generation defaults lie on the
config; any other keyword becomes an attribute.
"""

import glue
import torch
import transformers.models.clip.modeling_clip as clip
import transformers.models.siglip.modeling_siglip as siglip
from transformers import PreTrainedModel

GENERATION_DEFAULTS = {
    "max_length": 20, "min_length": 0, "do_sample": False, "early_stopping": False, "num_beams": 1, "num_beam_groups": 1,
    "diversity_penalty": 0.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0,
    "length_penalty": 1.0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0, "bad_words_ids": None,
    "num_return_sequences": 1, "output_scores": False, "return_dict_in_generate": False, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "remove_invalid_values": False, "exponential_decay_length_penalty": None, "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
OTHER_DEFAULTS = {
    "return_dict": True, "output_hidden_states": False, "torchscript": False, "use_bfloat16": False, "tie_word_embeddings": True,
    "chunk_size_feed_forward": 0, "is_encoder_decoder": False, "is_decoder": False, "cross_attention_hidden_size": None,
    "add_cross_attention": False, "tie_encoder_decoder": False, "architectures": None, "finetuning_task": None, "tokenizer_class": None,
    "prefix": None, "bos_token_id": None, "pad_token_id": None, "eos_token_id": None, "sep_token_id": None,
    "decoder_start_token_id": None, "task_specific_params": None, "problem_type": None,
}


def default_rates(config, device=None, seq_len=None, **kwargs):
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    width = int(width * getattr(config, "partial_rotary_factor", 1.0))
    return 1.0 / config.rope_theta ** (torch.arange(0, width, 2, dtype=torch.int64).float() / width), 1.0


class PretrainedConfig(glue.ConfigBase):
    model_type = ""
    base_config_key = ""
    sub_configs = {}
    is_composition = False
    has_no_defaults_at_init = False
    attribute_map = {}
    keys_to_ignore_at_inference = []
    base_model_tp_plan = None
    base_model_pp_plan = None
    _auto_class = None

    def __init__(self, **kwargs):
        for name, default in OTHER_DEFAULTS.items():
            setattr(self, name, kwargs.pop(name, default))
        for name, default in GENERATION_DEFAULTS.items():
            setattr(self, name, kwargs.pop(name, default))
        self.torch_dtype = kwargs.pop("torch_dtype", kwargs.pop("dtype", None))
        self.pruned_heads = kwargs.pop("pruned_heads", {})
        self._output_attentions = kwargs.pop("output_attentions", False)
        self.id2label = kwargs.pop("id2label", None)
        self.label2id = kwargs.pop("label2id", None)
        num_labels = kwargs.pop("num_labels", None)
        if self.id2label is not None:
            self.id2label = {int(key): value for key, value in self.id2label.items()}
        else:
            self.num_labels = 2 if num_labels is None else num_labels
        self._name_or_path = str(kwargs.pop("name_or_path", ""))
        self._commit_hash = kwargs.pop("_commit_hash", None)
        self._attn_implementation_internal = kwargs.pop("attn_implementation", None)
        self.transformers_version = kwargs.pop("transformers_version", None)
        for name, value in kwargs.items():
            setattr(self, name, value)

    @property
    def num_labels(self):
        return len(self.id2label)

    @num_labels.setter
    def num_labels(self, number):
        if getattr(self, "id2label", None) is None or len(self.id2label) != number:
            self.id2label = {index: f"LABEL_{index}" for index in range(number)}
            self.label2id = {label: index for index, label in self.id2label.items()}

    @property
    def name_or_path(self):
        return getattr(self, "_name_or_path", None)

    @name_or_path.setter
    def name_or_path(self, value):
        self._name_or_path = str(value)

    @property
    def use_return_dict(self):
        return self.return_dict

    @property
    def output_attentions(self):
        return self._output_attentions

    @output_attentions.setter
    def output_attentions(self, value):
        self._output_attentions = value

    @property
    def dtype(self):
        return self.torch_dtype

    @dtype.setter
    def dtype(self, value):
        self.torch_dtype = value

    @property
    def _attn_implementation(self):
        return self._attn_implementation_internal or "eager"

    @_attn_implementation.setter
    def _attn_implementation(self, value):
        self._attn_implementation_internal = value

    @classmethod
    def register_for_auto_class(cls, auto_class="AutoConfig"):
        pass

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        return cls(**{**config_dict, **kwargs})

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        glue.needs_repository(cls.__name__, args, kwargs)

    def get_text_config(self, decoder=False, encoder=False):
        for name in ("decoder", "generator", "text_config", "text_encoder"):
            inner = getattr(self, name, None)
            if glue.is_config(inner):
                return inner
        return self

    def to_dict(self):
        return {**self.__dict__, "model_type": self.model_type}

    def to_diff_dict(self):
        return self.to_dict()

    def update(self, config_dict):
        for name, value in config_dict.items():
            setattr(self, name, value)


class NestedTower(PreTrainedModel):
    """A tower that version 4 kept one level deeper than version 5 does."""

    inner_name = "vision_model"

    def __init__(self, config):
        super().__init__(config)
        setattr(self, self.inner_name, self.tower(config))

    def get_input_embeddings(self):
        return getattr(self, self.inner_name).get_input_embeddings()

    def forward(self, *args, **kwargs):
        return getattr(self, self.inner_name)(*args, **kwargs)


class CLIPVisionModel(NestedTower):
    config_class = clip.CLIPVisionConfig
    tower = clip.CLIPVisionModel


class CLIPTextModel(NestedTower):
    config_class = clip.CLIPTextConfig
    tower = clip.CLIPTextModel
    inner_name = "text_model"


class SiglipVisionModel(NestedTower):
    config_class = siglip.SiglipVisionConfig
    tower = siglip.SiglipVisionModel


class SiglipTextModel(NestedTower):
    config_class = siglip.SiglipTextConfig
    tower = siglip.SiglipTextModel
    inner_name = "text_model"
