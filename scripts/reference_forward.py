"""Write what torch says of each model type's forward call: `python scripts/reference_forward.py TARGET.jsonl.gz [PATTERN]`.

For every model type of transformers with an auto class: its main class with its default config, the first likely inputs it accepts and its outputs'
shapes, or why none was accepted. Rows of TARGET that ran before are kept; failures are tried again.
"""

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from weighbridge.simulate.forward import try_forward

BATCH, SEQ_TOKENS, SECONDS = 2, 64, 60
FIRST_MAPPINGS = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_MAPPING_NAMES")


def main_classes() -> dict[str, str]:
    """model type -> its causal language model, else its base model, else the first class of any task."""
    mappings = {name: getattr(modeling_auto, name) for name in dir(modeling_auto) if name.startswith("MODEL") and name.endswith("_NAMES")}
    ordered = [mappings[name] for name in FIRST_MAPPINGS] + list(mappings.values())
    found = {}
    for model_type in CONFIG_MAPPING_NAMES:
        classes = next((mapping[model_type] for mapping in ordered if model_type in mapping), None)
        if classes is not None:
            found[model_type] = classes if isinstance(classes, str) else classes[0]
    return found


def row_of(model_type: str, name: str) -> dict[str, Any]:
    """The reference row of one model type."""
    started = time.perf_counter()
    row: dict[str, Any] = {"model_type": model_type, "class": name}
    try:
        row |= try_forward(name, {"model_type": model_type}, batch=BATCH, seq_tokens=SEQ_TOKENS, seconds=SECONDS)
    except Exception as error:  # the class cannot even be built
        row["failure"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    return row | {"seconds": round(time.perf_counter() - started, 2)}


def main(target: str, pattern: str = "") -> None:
    """Add what is missing, and say what failed."""
    path = Path(target)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines() if path.exists() else []
    known = {row["model_type"]: row for row in map(json.loads, lines)}
    for number, (model_type, name) in enumerate(main_classes().items()):
        if pattern not in model_type or (model_type in known and "failure" not in known[model_type]):
            continue
        row = known[model_type] = row_of(model_type, name) | {"transformers": transformers.__version__}
        print(f"{number} {model_type}: {row.get('failure', 'ok')} {row['seconds']} s", flush=True)
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in known.values())
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
