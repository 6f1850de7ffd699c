"""The second instrument: torch's own fake tensors run a real transformers class on a CPU and say what a training step would take on a GPU.

It needs the extra `torch`, and the model's classes are imported and run: use it on code you trust. The estimate needs neither;
this is the truth that it is held against.
"""

from collections.abc import Mapping
from typing import Any

from weighbridge.base.errors import UsageError
from weighbridge.simulate.job import PRECISIONS, Simulation, StepJob

__all__ = ["PRECISIONS", "Simulation", "StepJob", "simulate"]


def simulate(model_class: str, config_kwargs: Mapping[str, Any], *, events: bool = False, **job: Any) -> Simulation:
    """A training step of the class `model_class` with this config. `job` are the fields of StepJob. Raises UsageError without torch."""
    try:
        from weighbridge.simulate.step import run  # noqa: PLC0415  # torch is heavy and optional; this is its single use
    except ImportError as error:
        raise UsageError(f"simulating needs {error.name}", hint="pip install 'weighbridge[torch]'") from error
    return run(model_class, config_kwargs, StepJob(**job), events=events)
