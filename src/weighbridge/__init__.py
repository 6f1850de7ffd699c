"""Weighbridge: what will this model weigh?"""

__version__ = "0.1.0"
