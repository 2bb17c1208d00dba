"""The entry point of every py_test: runs pytest on the files named on the command line."""

import sys

import pytest

if __name__ == "__main__":  # a process that a test spawns imports this module, too
    sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
