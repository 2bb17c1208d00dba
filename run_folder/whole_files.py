"""Small files that are replaced at once: a full disk or a kill leaves the old one whole."""

import os
import pathlib

TEMPORARY = ".new"  # how the name of a file ends that is not yet in its place


def write(path: pathlib.Path, content: str | bytes) -> None:
    """Puts a text, or bytes, in the place of what a file holds, or makes the file.

    Raises:
      OSError: it cannot be written. What was there is there still, and nothing else.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        else:
            temporary.write_text(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
