"""One forward call of a real class on fake tensors: which inputs it accepts and which shapes it gives."""

import contextlib
import signal
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers.initialization import no_init_weights

from weighbridge.reading.inputs import Inputs, candidate_inputs
from weighbridge.simulate import fakecuda
from weighbridge.simulate.attention import CudaAttention
from weighbridge.simulate.models import make_config, model_class, on_device
from weighbridge.simulate.patches import as_on_a_gpu
from weighbridge.simulate.step import facts_of, place
from weighbridge.simulate.tracker import Tracker, module_names


class TooLong(Exception):  # noqa: N818  # it is caught by its name, nobody sees it
    """A forward pass took longer than it was given."""


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TooLong in this thread after so many seconds."""

    def ring(*_args: Any) -> None:
        raise TooLong(f"more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def shapes(value: Any) -> Any:
    """Nested shapes: a list of numbers for a tensor, null for what has none."""
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, tuple | list):
        return [shapes(item) for item in value]
    return None


def outputs_of(out: Any) -> dict[str, Any]:
    """The output's fields that hold tensors, by name; "0", "1" ... for a plain tuple."""
    fields = out.items() if hasattr(out, "items") else enumerate(out if isinstance(out, tuple | list) else [out])
    return {str(name): found for name, value in fields if (found := shapes(value)) is not None}


def try_forward(name: str, config_kwargs: Mapping[str, Any], *, batch: int, seq_tokens: int, seconds: int) -> dict[str, Any]:
    """The first likely input that the class accepts, as a reference row; else the row's `failure` says why the first one was refused."""
    fakecuda.install()
    tracker = Tracker()
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True), tracker, as_on_a_gpu(CudaAttention()), torch.no_grad():
        warnings.simplefilter("ignore")
        with at_most(seconds):
            config = make_config(name, config_kwargs)
            with torch.device("cuda"), no_init_weights():
                model = model_class(name)._from_config(config, dtype=torch.float32)  # noqa: SLF001  # what the auto classes call
        on_device(model)
        model.train()
        with module_names(model, tracker):
            return _first_that_runs(model, tracker, candidate_inputs(facts_of(name, config), batch, seq_tokens), seconds)


def _first_that_runs(model: nn.Module, tracker: Tracker, candidates: Iterator[Inputs], seconds: int) -> dict[str, Any]:
    failures = []
    for number, candidate in enumerate(candidates):
        described = {key: value.as_json() for key, value in candidate.items()}
        tracker.values.asked.clear()
        tracker.modules.clear()
        try:
            with at_most(seconds):
                out = model(**{key: place(row, tracker) for key, row in described.items()})
        except Exception as error:  # whatever a model's own code raises is the answer
            failures.append({"inputs": sorted(described), "error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"})
            if isinstance(error, TooLong):
                break
            continue
        row = {"inputs": described, "outputs": outputs_of(out), "candidate": number}
        return (
            row
            | ({"unknown_values": sorted(set(tracker.values.asked))[:4]} if tracker.values.asked else {})
            | ({"refused": failures} if failures else {})
        )
    return {"failure": failures[0]["error"] if failures else "no candidate inputs", "refused": failures}
