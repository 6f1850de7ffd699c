"""Evidence to Model: find the class, read its source as text, build it on phantom tensors."""

from weighbridge.reading.plain import model_from_graph, model_to_graph
from weighbridge.reading.reader import read, read_plain

__all__ = ["model_from_graph", "model_to_graph", "read", "read_plain"]
