"""A run folder in a bucket, --run_dir=gs://<bucket>/<run>: each process keeps its part of it here.

`run_folder.mirrors` copies that part to the bucket, and fetches what this process goes on with.
"""

import atexit
import functools
import os
import pathlib
import shutil
import tempfile

RunDir = str | pathlib.Path


def is_bucket(run_dir: RunDir) -> bool:
    """Whether a run folder is no folder of this machine."""
    return "://" in os.fspath(run_dir)


@functools.cache
def local(run_dir: RunDir) -> pathlib.Path:
    """Where this process finds and leaves the files of a run, the same place whenever it asks."""
    if not is_bucket(run_dir):
        return pathlib.Path(run_dir)
    path = pathlib.Path(tempfile.mkdtemp(prefix="run-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
