"""jaxlib, whose extension modules say nothing of their types."""

from typing import Any

def __getattr__(name: str) -> Any: ...
