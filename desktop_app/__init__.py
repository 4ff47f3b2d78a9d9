"""Floodmark: train on your own GPU and see the out-of-memory error before it happens."""

from typing import Final

__version__: Final = "0.1.0"
