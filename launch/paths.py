"""Folders as they are typed on command lines."""

import os

# Of Linux, in bytes. A run's files have names of their own below its folder.
_LONGEST_NAME, _LONGEST_PATH = 255, 4096 - 256


def folder(text: str) -> str:
    """The path that is meant, with `~` as the home folder; a bucket's stays as it is.

    Raises:
      ValueError: there can be no such folder.
    """
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ValueError(f"There is no home folder {path.split('/')[0]}; ./{path} is a name.")
    try:
        names = [name.encode() for name in path.split("/")]
    except UnicodeEncodeError:
        raise ValueError("The name of a folder was expected, got bytes that are no text.") from None
    if "\0" in path:
        raise ValueError("The name of a folder was expected, got one with a null byte.")
    longest = max(map(len, names))
    if longest > _LONGEST_NAME:
        raise ValueError(f"A name has at most {_LONGEST_NAME} bytes, got one of {longest}.")
    length = len(os.path.abspath(path).encode())
    if length > _LONGEST_PATH:
        raise ValueError(f"A path has at most {_LONGEST_PATH:,} bytes, got one of {length:,}.")
    return path
