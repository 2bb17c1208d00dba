"""The entry point of every py_test: runs pytest on the files named on the command line."""

import sys

import pytest

# The rest takes long, starts programs, or reads the work tree: `make test-all` runs it.
MARKS = "not slow and not launchpad and not repository"

if __name__ == "__main__":  # a process that a test spawns imports this module, too
    sys.exit(pytest.main(["-p", "no:cacheprovider", "-m", MARKS, *sys.argv[1:]]))
