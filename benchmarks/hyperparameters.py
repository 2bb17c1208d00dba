"""Writes a page of settings: python -m benchmarks.hyperparameters docs/hyperparameters.md"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from agents import fields
from agents.entry import Entry, Kind
from benchmarks import study
from run_folder import catalogue
from run_folder.catalogue import PRESETS
from run_folder.settings import Settings

_IN_WORDS = {"dmlab": "DMLab", "control_image": "control image"}

_PAGE = """\
# Settings and hyperparameters

`python -m benchmarks.hyperparameters docs/hyperparameters.md` writes this page from the
declarations in `run_folder/settings.py` and in each agent's `config.py`. `python -m launch.train
--help=r2d2 --env=catch` shows those of one agent for one environment.

*control* has vectors of numbers as actions, *control image* images as observations too. In the
local preset, *image* is any other image of at least 20 x 20 pixels, *small* everything else. An
empty cell has the paper's value: for DeepMind Lab and control its own, elsewhere Atari's.
"""


def page() -> str:
    """The text of docs/hyperparameters.md."""
    parts = [_PAGE, "## Launch\n", _launch()]
    first: dict[type, str] = {}  # the agent of each Config that has the whole table
    for name, entry in catalogue.AGENTS.items():
        like = first.setdefault(type(entry.config), name)
        parts += [f"## {name}\n", _table(entry) if like == name else _difference(name, like)]
    return "\n".join(parts)


def _launch() -> str:
    rows = [
        [f"`--{name}`", *(_text(field.presets.get(p, "")) for p in PRESETS), field.meaning]
        for name, field in fields.declared(Settings).items()
        if name != "configs"
    ]
    return _markdown(["flag", *PRESETS, "meaning"], rows)


def _table(entry: Entry) -> str:
    columns = dict(_columns(entry))
    rows = []
    for name, field in fields.declared(type(entry.config)).items():
        values = [column.get(name, "") for column in columns.values()]
        rows.append([f"`{name}`", *values, field.meaning])
    return _markdown(["field", *columns, "meaning"], rows)


def _columns(entry: Entry) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each column, by field: the paper's for Atari, and where others differ."""
    paper = dataclasses.asdict(entry.config)
    yield "paper", {name: _text(value) for name, value in paper.items()}
    special: dict[Kind, Any] = {
        "dmlab": entry.dmlab,
        "control": entry.control,
        "control_image": entry.control_image,
    }
    own = {kind: dataclasses.asdict(config) for kind, config in special.items() if config}
    for kind, values in own.items():
        yield f"paper, {_IN_WORDS.get(kind, kind)}", _changed(paper, values)
    for kind in get_args(Kind):
        if kind in entry.local:
            base = own.get(kind, paper)
            changed = _changed(base, base | dict(entry.local[kind]))
            yield f"local, {kind.replace('_', ' ')}", changed


def _difference(name: str, like: str) -> str:
    """The fields in which an agent differs from another with the same Config, by preset."""
    mine, other = catalogue.AGENTS[name], catalogue.AGENTS[like]
    base, own = dataclasses.asdict(other.config), dataclasses.asdict(mine.config)
    paper = _said(base, own)
    local = {
        _said(base | dict(other.local[kind]), own | dict(mine.local[kind])) for kind in mine.local
    }
    if local == {paper}:
        return f"As {like}, but for {paper}.\n"
    return f"As {like}, but for {paper} (paper); {' or '.join(sorted(local))} (local).\n"


def _said(base: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    changed = _changed(base, values).items()
    return ", ".join(f"`{field}` {value}" for field, value in changed)


def _changed(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items() if value != base[name]}


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table; bars would end a cell, and a word in angles would be HTML."""
    escaped = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    return study.markdown(header, escaped) + "\n"


if __name__ == "__main__":
    (output,) = study.positional(__doc__, "output")
    pathlib.Path(output).write_text(page())
