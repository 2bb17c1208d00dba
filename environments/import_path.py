"""Placeholder until the branch `envs` is merged."""

import importlib
import re
from typing import Any


def is_import_path(text: str) -> bool:
    """Whether a text is a dotted Python path, a colon, and a name."""
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", text) is not None


def load(path: str, *, what: str, example: str) -> Any:
    """The object. Raises ValueError."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
