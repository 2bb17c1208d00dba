"""What the scripts of docs/ are told on the command line."""

import argparse
import pathlib
import sys
import types
from collections.abc import Collection, Mapping

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"


def positional(description: str | None, *names: str) -> list[str]:
    """The arguments of these names, in order; with none, a script that takes only --help.

    Ends the program with a sentence where there are more or fewer, and with help where asked.
    """
    parser = _parser(description)
    for name in names:
        parser.add_argument(name)
    return list(vars(parser.parse_args()).values())


def of_trainings(
    description: str | None,
    runs: str,
    minutes: float | None,
    choices: Mapping[str, Collection[str]] = types.MappingProxyType({}),
) -> argparse.ArgumentParser:
    """The parser of a script that trains for so many minutes each, then draws; others add to it.

    Args:
      description: the script's.
      runs: what its folder of runs holds.
      minutes: that a training is given where nothing is said.
      choices: arguments that come before that folder, and what each may be.
    """
    parser = _parser(description)
    for name, values in choices.items():
        parser.add_argument(name, choices=values)
    parser.add_argument("runs", type=pathlib.Path, help=f"folder of the {runs}")
    parser.add_argument(
        "--minutes", type=float, default=minutes, help=f"of each of the {runs}; 0 only draws"
    )
    parser.add_argument("--docs", type=pathlib.Path, default=DOCS, help="folder of data and images")
    return parser


def make_folders(docs: pathlib.Path) -> None:
    """Makes those that data and images go to."""
    for folder in ("data", "images"):
        (docs / folder).mkdir(parents=True, exist_ok=True)


def _parser(description: str | None) -> argparse.ArgumentParser:
    spec = sys.modules["__main__"].__spec__
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name}" if spec else None,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
