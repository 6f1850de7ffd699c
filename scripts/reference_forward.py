"""Write what torch says of each model type's forward call: `python scripts/reference_forward.py TARGET.jsonl.gz [PATTERN]`.

For every model type of transformers with an auto class: its main class with its default config, the first likely inputs
it accepts and its outputs' shapes, or why none was accepted. Rows of TARGET that ran before are kept; failures are tried again.
"""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from weighbridge.simulate.forward import try_forward

BATCH, SEQ_TOKENS, SECONDS = 2, 64, 60
LAYER_DROPS = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop")  # chances to leave out a layer
# What a default config leaves open, or open to contradiction; the values are those of a published checkpoint or the smallest that work.
COMPLETIONS: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 24},
    "informer": {"prediction_length": 24},
    "time_series_transformer": {"prediction_length": 24},
    "reformer": {"is_decoder": True},
    "xmod": {"default_language": "en_XX"},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
    "deepseek_v2": {"num_experts_per_tok": 6, "n_routed_experts": 16},
    "depth_pro": {"image_size": 1536},
}
FIRST_MAPPINGS = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_MAPPING_NAMES")


def main_classes() -> dict[str, str]:
    """Model type -> its causal language model, else its base model, else the first class of any task."""
    mappings = {name: getattr(modeling_auto, name) for name in dir(modeling_auto) if name.startswith("MODEL") and name.endswith("_NAMES")}
    ordered = [mappings[name] for name in FIRST_MAPPINGS] + list(mappings.values())
    found = {}
    for model_type in CONFIG_MAPPING_NAMES:
        classes = next((mapping[model_type] for mapping in ordered if model_type in mapping), None)
        if classes is not None:
            found[model_type] = classes if isinstance(classes, str) else classes[0]
    return found


def changes(model_type: str) -> dict[str, Any]:
    """What a default config must be given so that a call is possible, and decided by no dice."""
    made = dict(COMPLETIONS.get(model_type, {}))
    default = CONFIG_MAPPING[model_type](**made)
    if getattr(default, "mask_time_prob", 0):
        made["apply_spec_augment"] = False
    made |= {key: 0.0 for key in LAYER_DROPS if getattr(default, key, 0)}
    return made


def stale(model_type: str, row: dict[str, Any]) -> bool:
    """Whether a row is missing, failed, or was made with another config."""
    try:
        return "failure" in row or row.get("config") != {"model_type": model_type} | changes(model_type)
    except Exception:  # the default config itself is refused, and the row will say so
        return True


def row_of(model_type: str, name: str) -> dict[str, Any]:
    """The reference row of one model type."""
    started = time.perf_counter()
    row: dict[str, Any] = {"model_type": model_type, "class": name, "config": {"model_type": model_type}}
    try:
        row["config"] |= changes(model_type)
        row |= try_forward(name, row["config"], batch=BATCH, seq_tokens=SEQ_TOKENS, seconds=SECONDS)
    except Exception as error:  # the class cannot even be built
        row["failure"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    return row | {"seconds": round(time.perf_counter() - started, 2)}


def child(names: list[str]) -> None:
    """Say which model type is next and then its row, a line each: a class can take the whole process with it."""
    classes = main_classes()
    for model_type in names:
        print(json.dumps({"next": model_type}), flush=True)
        print(
            json.dumps(row_of(model_type, classes[model_type]) | {"transformers": transformers.__version__}, separators=(",", ":")),
            flush=True,
        )


def rows_of(names: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of these model types; where a process dies, its last type gets a failure and a new process goes on."""
    classes = main_classes()
    while names:
        current = names[0]
        with subprocess.Popen(
            [sys.executable, __file__, "--child", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            for line in process.stdout or ():
                if not line.startswith("{"):
                    continue
                row = json.loads(line)
                current = row.get("next", current)
                if "next" not in row:
                    names = names[names.index(row["model_type"]) + 1 :]
                    yield row
        if names and process.returncode:
            yield {
                "model_type": current,
                "class": classes[current],
                "config": {"model_type": current},
                "failure": f"torch ended the process ({process.returncode})",
            }
            names = names[names.index(current) + 1 :]


def main(target: str, pattern: str = "") -> None:
    """Add what is missing, and say what failed."""
    path = Path(target)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines() if path.exists() else []
    known = {row["model_type"]: row for row in map(json.loads, lines)}
    order = list(main_classes())
    names = [name for name in order if pattern in name and stale(name, known.get(name, {}))]
    for row in rows_of(names):
        known[row["model_type"]] = row
        print(f"{row['model_type']}: {row.get('failure', 'ok')}", flush=True)
        text = "".join(json.dumps(known[name], separators=(",", ":")) + "\n" for name in order if name in known)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main(*sys.argv[1:])
