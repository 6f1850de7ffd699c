"""Evidence to Model: find the class, read its source as text, build it on phantom tensors."""

from weighbridge.reading.reader import read, read_plain

__all__ = ["read", "read_plain"]
