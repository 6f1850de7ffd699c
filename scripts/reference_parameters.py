"""The torch side of `parity parameters`: build transformers' own classes on the meta device and write what they hold, one JSON line each.

Runs in a process of its own, with the transformers package that PYTHONPATH or the environment gives.
"""

import argparse
import gzip
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

SECONDS = 180
VARIATIONS = 2
KEPT = {
    "transformers_version", "model_type", "dtype", "architectures", "return_dict", "output_hidden_states", "chunk_size_feed_forward",
    "id2label", "label2id", "_name_or_path", "problem_type",
}  # fmt: skip
TABLES = {name: table for name, table in vars(modeling_auto).items() if name.startswith("MODEL") and name.endswith("_NAMES")}


def class_names(model_type: str, table: str) -> list[str]:
    """The classes a table gives for a type."""
    found = TABLES.get(table, {}).get(model_type, ())
    return [found] if isinstance(found, str) else list(found)


def classes_of(model_type: str) -> list[str]:
    """The main head's class and the base class."""
    causal, base = class_names(model_type, "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"), class_names(model_type, "MODEL_MAPPING_NAMES")
    other = [name for table in TABLES for name in class_names(model_type, table)]
    heads = causal or [name for name in other if name not in base] or base
    return list(dict.fromkeys([*heads[:1], *base[:1]]))


def vary(values: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Draw a change of a configuration: depths, widths, flags, sub-configurations."""
    drawn: dict[str, Any] = {}
    for key, value in values.items():
        if key in KEPT or key.endswith(("token_id", "_token_index")):
            continue
        if type(value) is bool:
            if rng.random() < 0.35:
                drawn[key] = not value
        elif type(value) is int:
            change = vary_integer(key, value, rng)
            if change is not None:
                drawn[key] = change
        elif type(value) is dict and "model_type" in value and rng.random() < 0.7:
            inner = vary(value, rng)
            if inner:
                drawn[key] = {"model_type": value["model_type"], **inner}
    return drawn


def vary_integer(key: str, value: int, rng: random.Random) -> int | None:
    """Another value for a size, or None to leave it."""
    if any(part in key for part in ("num_hidden_layers", "n_layer", "num_layers", "depth")) and rng.random() < 0.6:
        return max(1, value // rng.choice([2, 3, 4]))
    if any(part in key for part in ("vocab_size", "intermediate", "ffn", "position_embeddings")) and rng.random() < 0.5:
        return value + rng.choice([8, 64, 128])
    if "key_value_heads" in key and rng.random() < 0.5:
        return 1
    if "experts" in key and "per_tok" not in key and value > 8 and rng.random() < 0.5:
        return value // 2
    return value * 2 if key == "hidden_size" and rng.random() < 0.3 else None


def jobs(quick: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every (model type, class, changes) to build."""
    for number, model_type in enumerate(CONFIG_MAPPING_NAMES):
        names = classes_of(model_type)
        if not names or (quick and number % 12):
            continue
        for name in names:
            yield model_type, name, {}
        if quick:
            continue
        try:
            values = CONFIG_MAPPING[model_type]().to_dict()
        except Exception:  # noqa: S112 - a default that cannot be made has no variations
            continue
        for number_drawn in range(VARIATIONS):
            change = vary(values, random.Random(f"{model_type}-{number_drawn}"))  # noqa: S311 - a seeded draw
            if change:
                yield model_type, names[0], change


class TooLongError(Exception):
    """A class that takes too long to build."""


def alarm(*_: Any) -> None:
    """End a build."""
    raise TooLongError


def build(model_type: str, class_name: str, change: dict[str, Any]) -> dict[str, Any]:
    """One class on the meta device."""
    record: dict[str, Any] = {"model_type": model_type, "class": class_name, "change": change}
    started = time.time()
    try:
        signal.alarm(SECONDS)
        config = CONFIG_MAPPING[model_type](**json.loads(json.dumps(change)))
        cls = getattr(transformers, class_name)
        wanted = getattr(cls, "config_class", None)
        if wanted is not None and not isinstance(config, wanted) and isinstance(config.get_text_config(), wanted):
            config = config.get_text_config()
        with torch.device("meta"):
            model = cls(config)
        numbers: dict[int, int] = {}
        record["parameters"] = [
            [n, list(p.shape), numbers.setdefault(id(p), len(numbers))] for n, p in model.named_parameters(remove_duplicate=False)
        ]
        record["total"] = sum(parameter.numel() for parameter in model.parameters())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        record["error"] = f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
    record["seconds"] = round(time.time() - started, 3)
    return record


def main() -> int:
    """Write every record to a gzip file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, alarm)
    with gzip.open(options.output, "wt") as file:
        for number, (model_type, class_name, change) in enumerate(jobs(options.quick)):
            file.write(json.dumps(build(model_type, class_name, change)) + "\n")
            if number % 100 == 0:
                print(number, model_type, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
