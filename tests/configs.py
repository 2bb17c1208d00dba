"""Configs that say which of their fields were read."""

import dataclasses
from typing import Any


def watched(config: Any) -> tuple[Any, set[str]]:
    """A copy of a config, and the names that have been read of it since it was made."""
    read: set[str] = set()

    class Watched(type(config)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    copy = Watched(**dataclasses.asdict(config))
    read.clear()  # what was only checked does not count
    return copy, read
