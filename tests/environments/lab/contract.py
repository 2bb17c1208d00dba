"""What DeepMind Lab's Python module does: checks that the stand-in and the real one both pass.

`test_dmlab_module.py` runs each of `CHECKS` in a process of its own, by
`python -m tests.environments.lab.contract <name>`: an engine may end its process.
"""

import inspect
import sys

from tests.environments.lab import calls, processes

CHECKS = {
    name: function
    for module in (calls, processes)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
