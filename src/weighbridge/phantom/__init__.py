"""torch without data: tensors with a shape, a dtype and a storage, the operations over them, and autograd."""

from weighbridge.phantom.autograd import run_backward
from weighbridge.phantom.checkpoint import checkpoint
from weighbridge.phantom.operations import OPERATIONS, operation, record
from weighbridge.phantom.session import Recorder, Session, Where, current
from weighbridge.phantom.tensor import Storage, Tensor

__all__ = [
    "OPERATIONS", "Recorder", "Session", "Storage", "Tensor", "Where", "checkpoint", "current", "operation", "record", "run_backward",
]  # fmt: skip
