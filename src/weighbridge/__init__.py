"""What a model will weigh, from its config and its source.

    report = weighbridge.plan("Qwen/Qwen3-8B", method="lora")

Importing the package loads nothing; the first use of a name does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighbridge.answers import plan as plan
    from weighbridge.base.errors import CannotTell as CannotTell
    from weighbridge.base.errors import WeighError as WeighError
    from weighbridge.report import Report as Report

__version__ = "0.1.0"

__all__ = ["CannotTell", "Report", "WeighError", "__version__", "plan"]

_HOMES = {
    "CannotTell": "weighbridge.base.errors",
    "Report": "weighbridge.report",
    "WeighError": "weighbridge.base.errors",
    "plan": "weighbridge.answers",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weighbridge' has no attribute {name!r}")
    return getattr(import_module(home), name)
