"""A folder of compiled maps that any number of DeepMind Lab's engines share."""

import os
import shutil
import sys
import tempfile
from pathlib import Path


def default_folder() -> Path:
    """The user's own: below `XDG_CACHE_HOME`, or else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "recurrent-replay" / "dmlab-levels"


class LevelCache:
    """What the engine asks before it compiles a map, and tells afterwards.

    A map's key names its content, so entries never change. They are never removed either: a level
    that makes a new map for every episode lets the folder grow for ever.
    """

    def __init__(self, folder: Path) -> None:
        """Makes a cache of a folder, which `write` makes where it is missing."""
        self._folder = folder

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a map to where the engine wants it, and returns whether it was there."""
        try:
            shutil.copyfile(self._folder / key, pk3_path)
        except FileNotFoundError:
            return False
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
        except OSError as error:  # a full disk costs time, not the environment
            print(f"The map {key} could not be cached: {error}", file=sys.stderr)
