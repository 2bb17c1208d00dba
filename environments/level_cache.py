"""A folder of compiled maps that any number of DeepMind Lab's engines share."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

MAX_BYTES = 4 * 2**30  # a few thousand maps


def default_folder() -> Path:
    """The user's own: below `XDG_CACHE_HOME`, or else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "recurrent-replay" / "dmlab-levels"


class LevelCache:
    """What the engine asks before it compiles a map, and tells afterwards.

    A map's key names its content, so entries never change. A level that makes a new map for every
    episode would let the folder grow for ever: what was not used for longest goes when it is full.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Makes a cache.

        Args:
          folder: `write` makes it where it is missing.
          max_bytes: of all maps together.
        """
        self._folder = folder
        self._max_bytes = max_bytes

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a map to where the engine wants it, and returns whether it was there."""
        try:
            shutil.copyfile(self._folder / key, pk3_path)
        except FileNotFoundError:
            return False
        with contextlib.suppress(OSError):  # removed this moment, or of another user
            os.utime(self._folder / key)  # a file's own record of reads is coarse
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Keeps a copy of the map that the engine has compiled."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Renamed when whole: other processes must never fetch half a map.
            descriptor, path = tempfile.mkstemp(dir=self._folder)
            os.close(descriptor)
            shutil.copyfile(pk3_path, path)
            os.replace(path, self._folder / key)
            self._make_room()
        except OSError as error:  # a full disk costs time, not the environment
            print(f"The map {key} could not be cached: {error}", file=sys.stderr)

    def _make_room(self) -> None:
        """Removes the maps that were not used for longest; other processes may do so too."""
        found = []
        for file in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
        excess = sum(size for _, size, _ in found) - self._max_bytes
        for _, size, file in sorted(found):
            if excess <= 0:
                return
            file.unlink(missing_ok=True)
            excess -= size
