"""A decision that is cut short is done whole or not at all; damaged files are named."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from population import adoption, decisions
from population.decisions import State
from population.folder import PopulationFolder
from run_folder import checkpoints, disk
from run_folder.settings import SettingsError
from tests.population.learners import again
from tests.population.populations import AGENT, contents, settings_of


class _Killed(BaseException):
    """Stands for SIGKILL."""


def _die(*_: object, **__: object) -> Any:
    raise _Killed


@pytest.mark.parametrize(
    ("where", "name", "is_made"),
    [
        (adoption, "stage", False),
        (adoption, "_check_fits", False),
        (decisions, "write", False),
        (adoption, "publish", True),
        (checkpoints, "write", True),
        (checkpoints, "keep", True),
        (disk, "write", True),
    ],
)
def test_a_kill_amid_a_decision_leaves_all_or_nothing(
    where: Any,
    name: str,
    is_made: bool,
    state: State,
    folder: PopulationFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = again(folder.member(0), 1.0).values()
    with monkeypatch.context() as context:
        context.setattr(where, name, _die)
        with pytest.raises(_Killed):
            state.decide(0, has_failed=True)
    assert len(decisions.of_member(folder, 0)) == 1 + is_made
    found = State(settings_of(), folder).begin(0)
    assert found.decision.number == int(is_made)
    learning = again(folder.member(0), 1.0)
    if is_made:
        assert found.decision.rival is not None
        assert learning.values() == again(folder.member(found.decision.rival), 1.0).values()
        assert learning.learner_steps == 6
        assert checkpoints.kept_steps(folder.member(0).checkpoints, AGENT) == [2, 5, 6]
    else:
        assert learning.values() == before
        made = state.decide(0, has_failed=True)
        assert made.adopted == 0
        assert made.number == 1
    whole = contents(folder.path)
    State(settings_of(), folder).begin(0)  # which has nothing left to do
    assert contents(folder.path) == whole


def test_what_a_member_was_kept_from_doing_and_cannot_do_is_a_sentence(
    state: State, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(adoption, "publish", _die)
        with pytest.raises(_Killed):
            state.decide(0, has_failed=True)
    for file in (folder.member(0).checkpoints / "learner-impala").glob("6.*"):
        file.unlink()
    with pytest.raises(SettingsError, match=r"learner-impala/6\.index is missing, which was to be"):
        state.begin(0)


def _cut(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def _empty(path: pathlib.Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | dict(new={})))


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("members/01/checkpoints/manifest.json", _cut, "manifest.json is corrupt: "),
        ("decisions/01-0000.json", _cut, "01-0000.json cannot be read: "),
        ("decisions/01-0000.json", _empty, "Decision 0 of member 01 in "),
    ],
)
def test_a_damaged_file_of_any_member_is_named(
    file: str,
    damage: Callable[[pathlib.Path], None],
    said: str,
    state: State,
    folder: PopulationFolder,
) -> None:
    damage(folder.path / file)
    for ask in (lambda: state.look(1), lambda: state.begin(1), lambda: state.decide(0)):
        with pytest.raises(SettingsError, match=r"\.$") as error:
            ask()
        assert said in str(error.value)
    assert len(decisions.of_member(folder, 0)) == 1
