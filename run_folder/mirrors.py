"""A process's part of a run folder: that folder itself, or a copy of one in a bucket."""

import functools
import importlib
import os

from run_folder import layout
from run_folder.layout import RunDir

_BUCKETS = "run_folder.buckets"  # which most runs do without


@functools.cache
def of(run_dir: RunDir) -> "Mirror":
    """This process's part of a run folder, the same one whenever it is asked for."""
    if not layout.is_bucket(run_dir):
        return Mirror(run_dir)
    found: Mirror = importlib.import_module(_BUCKETS).InBucket(run_dir)
    return found


class Mirror:
    """A process's part of a run folder. Of one on this machine's disk it is the folder itself.

    Attributes:
      root: the run folder, as TensorFlow's file system names it.
      path: where its files are here.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self.root = os.fspath(run_dir).rstrip("/")
        self.path = layout.local(run_dir)

    def keep_pushed(self) -> None:
        """Pushes from now on: every minute what is written, and everything when this ends."""

    def fetch(self, *patterns: str) -> None:
        """Gets the files of the run folder that match, as they are there now.

        Raises:
          tf.errors.OpError: the bucket cannot be read.
        """

    def push(self, *, checkpoints: bool = False) -> bool:
        """Makes the bucket's files of this process as they are here.

        Args:
          checkpoints: whether to push those too, whose manifests come last.

        Returns:
          Whether it could be done. If not, the next push does it.
        """
        return True
