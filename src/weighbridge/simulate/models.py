"""A real transformers class, built on fake CUDA in the precision of the job, with its adapters and its optimizer."""

from collections.abc import Callable, Mapping
from typing import Any

import peft
import torch
import transformers
from torch import nn
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from weighbridge.simulate.job import StepJob

# Ends of class names whose adapters peft wraps in a class of their own.
PEFT_TASKS = (("ForCausalLM", "CAUSAL_LM"), ("LMHeadModel", "CAUSAL_LM"), ("ForSequenceClassification", "SEQ_CLS"))

Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Optimizer] = {
    "adamw-fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
    "adamw-foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, foreach=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-4),
    "sgd-momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9),
}


def model_class(name: str) -> Any:
    """The transformers class of this name. Raises AttributeError if there is none."""
    return getattr(transformers, name)


def make_config(name: str, config_kwargs: Mapping[str, Any]) -> Any:
    """The config object that the class wants; `model_type` in the keywords decides where the class leaves it open."""
    keywords = dict(config_kwargs)
    model_type = keywords.pop("model_type", None)
    wanted = getattr(model_class(name), "config_class", None)
    kind: Any = CONFIG_MAPPING.get(model_type, wanted)
    config = kind(**keywords)
    if wanted is not None and not isinstance(config, wanted):
        text = config.get_text_config()
        config = text if isinstance(text, wanted) else config
    return config


def build(name: str, config_kwargs: Mapping[str, Any], job: StepJob) -> tuple[Any, Any]:
    """(model, config) in training mode. Call it under the fake mode and the tracker."""
    config = make_config(name, config_kwargs)
    with torch.device("cuda"), no_init_weights():
        model = model_class(name)._from_config(config, dtype=getattr(torch, job.weights), attn_implementation=job.attention)  # noqa: SLF001  # what the auto classes call
        model.tie_weights()
    on_device(model)
    model.train()
    if job.method == "lora":
        model = _with_adapters(model, name, config, job)
    if job.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if job.method == "lora":
            model.enable_input_require_grads()
    model.train()
    return model, config


def on_device(model: nn.Module) -> None:
    """Move what a constructor made on the CPU in spite of the default device."""
    if any(tensor.device.type == "cpu" for tensor in [*model.parameters(), *model.buffers()]):
        model.to("cuda")


def _with_adapters(model: Any, name: str, config: Any, job: StepJob) -> Any:
    task = next((task for end, task in PEFT_TASKS if name.endswith(end)), None)
    if task is None and getattr(config, "is_encoder_decoder", False) and model.main_input_name == "input_ids":
        task = "SEQ_2_SEQ_LM"
    settings = peft.LoraConfig(
        r=job.lora_rank, lora_alpha=2 * job.lora_rank, lora_dropout=0.0, target_modules=job.lora_targets, bias="none", task_type=task
    )
    return peft.get_peft_model(model, settings)


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that a step changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
