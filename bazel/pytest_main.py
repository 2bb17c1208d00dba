"""The entry point of every py_test: runs pytest on the files named on the command line."""

import sys

import pytest

sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
