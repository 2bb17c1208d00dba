"""What the scripts of docs/ are told on the command line."""

import argparse
import sys


def positional(description: str | None, *names: str) -> list[str]:
    """The arguments of these names, in order; with none, a script that takes only --help.

    Ends the program with a sentence where there are more or fewer, and with help where asked.
    """
    spec = sys.modules["__main__"].__spec__
    parser = argparse.ArgumentParser(
        prog=f"python -m {spec.name}" if spec else None,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in names:
        parser.add_argument(name)
    return list(vars(parser.parse_args()).values())
