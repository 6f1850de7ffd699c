"""One measured piece of work in a process of its own: `in_process.py NAME` prints seconds by name as JSON. Started by benchmarks/run."""

# ruff: noqa: PLC0415 - what is imported is part of what is measured

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

MODELS = {"8B": "Qwen/Qwen3-8B", "405B": "meta-llama/Meta-Llama-3.1-405B", "671B": "deepseek-ai/DeepSeek-V3"}
BATCHES = (3, 5, 6, 7, 9, 12, 17, 33)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds and what came of it."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def read() -> dict[str, float]:
    """Reading alone: a first model, then three sizes with their sources parsed, each the best of three."""
    from weighbridge import reading
    from weighbridge.sources import catalogue

    evidence = {size: replace(catalogue.get(name), graph=None, files={}) for size, name in MODELS.items()}
    evidence = {size: replace(found, config=plain(found.config)) for size, found in evidence.items()}
    times = {"read 8B, first": timed(lambda: reading.read(evidence["8B"]))[0]}
    for size, found in evidence.items():
        reading.read(found)
        times[f"read {size}"] = min(timed(lambda found=found: reading.read(found))[0] for _ in range(3))
    return times


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """A config that names no code of its own: the installed transformers has the class."""
    return {key: value for key, value in config.items() if key != "auto_map"}


def batches() -> dict[str, float]:
    """A full fine-tune's step, then its peak at other batches."""
    from weighbridge import reading
    from weighbridge.jobs.estimate import estimate
    from weighbridge.jobs.job import Job
    from weighbridge.sources import catalogue

    model = reading.read(catalogue.get(MODELS["8B"]))
    first, job = timed(lambda: estimate(model, Job(method="full")))
    growth, length = job.footprint.growth, job.seq_tokens
    second = timed(lambda: growth.allocated_bytes(2, length))[0]
    others = timed(lambda: [growth.allocated_bytes(batch, length) for batch in BATCHES])[0]
    return {"a step of 8B": first, "the first other batch": second, "any further batch": others / len(BATCHES)}


def accelerate(folder: str) -> dict[str, float]:
    """What accelerate's estimate-memory does once a config is at hand: the model on the meta device, and the sizes of its parts."""
    start = time.process_time()
    import transformers
    from accelerate import init_empty_weights
    from accelerate.utils import calculate_maximum_sizes

    config = transformers.AutoConfig.from_pretrained(folder)
    with init_empty_weights():
        model = getattr(transformers, config.architectures[0])(config)
    calculate_maximum_sizes(model)
    return {"accelerate": time.process_time() - start}


def write_config(folder: Path, size: str = "8B") -> None:
    """A model's config.json where accelerate can find it."""
    from weighbridge.sources import catalogue

    (folder / "config.json").write_text(json.dumps(plain(catalogue.get(MODELS[size]).config)), "utf-8")


WORK: dict[str, Callable[..., dict[str, float]]] = {"read": read, "batches": batches, "accelerate": accelerate}

if __name__ == "__main__":
    print(json.dumps(WORK[sys.argv[1]](*sys.argv[2:])))
