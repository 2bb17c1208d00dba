"""Whatever a population's files hold is a population and its decisions, or is refused by file."""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.members import view
from population import decisions, settings
from population.decisions import Member, State
from population.folder import PopulationFolder
from population.settings import Asked, Population
from run_folder.settings import SettingsError
from tests import fuzzing
from tests.fuzzing import JSON, Edits
from tests.population.populations import decision_of, settings_of

_SWEEP = dict(
    learning_rate="log:1e-4:1e-2",
    correction="choice:vtrace,none",
    max_gradient_norm="choice:none,40",
    hidden_sizes="choice:64,32",
)
_MADE = settings_of(
    sweep=_SWEEP,
    flags=dict(num_actors=4, max_actor_steps=1_000, preset="local"),
    overrides={"impala": dict(length="8"), "": dict(annealing_frames="none")},
)
_POPULATION: dict[str, Any] = json.loads(_MADE.to_json())
_VALUES = dict(learning_rate=1e-3, correction="vtrace", max_gradient_norm=None, hidden_sizes=[64])
_DECISION = dataclasses.asdict(
    decision_of(
        1,
        1,
        score=0.5,
        rival=2,
        rival_score=0.75,
        adopted=0,
        rival_learner_step=7,
        old=_VALUES,
        new=_VALUES,
    )
)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    """A population whose member 1 has decided twice."""
    found = PopulationFolder(tmp_path)
    settings.record(found, _MADE)
    decisions.write(found, decision_of(1, 0, new=_VALUES))
    return found


def _resume(folder: PopulationFolder, said: bytes) -> str | None:
    """Fails unless a population.json can be gone on with, or is refused; returns the sentence."""
    folder.settings.write_bytes(said)
    values = dict(run_dir=str(folder.path))
    try:
        found = settings.resumed(Asked(values, {}, {}, []))
    except SettingsError as error:
        fuzzing.check_sentence(str(error))
        return str(error)
    _check_usable(folder, found)
    settings.record(folder, found)
    assert settings.load(folder.path) == found
    return None


def _check_usable(folder: PopulationFolder, found: Population) -> None:
    """Fails for what no members can be trained with, by what is known without its own checks."""
    assert 2 <= found.members <= 1_000
    assert min(found.concurrent, found.turn_steps, found.ready_episodes) >= 1
    assert found.mutation_factor >= 1
    for member in {0, 1, found.members - 1}:
        drawn = found.draw(member)
        run = found.run_of(folder, member, drawn)
        fuzzing.check_usable(run)
        assert run.agent == found.agent
        assert set(drawn) == set(found.sweep)


def _look(folder: PopulationFolder, said: bytes) -> str | None:
    """Fails unless a decision is one that can be gone on from, or is refused."""
    (folder.decisions / "01-0001.json").write_bytes(said)
    state = State(_MADE, folder)
    try:
        found = state.look(1)
    except SettingsError as error:
        fuzzing.check_sentence(str(error))
        return str(error)
    _check_shown(found)
    run = _MADE.run_of(folder, 1, found.decision.new)
    fuzzing.check_usable(run)
    try:
        state.begin(1)
    except SettingsError as error:  # what it says that it took is not there
        fuzzing.check_sentence(str(error))
    decisions.list_all(folder)
    return None


def _check_shown(member: Member) -> None:
    """Fails for a decision of which nothing could be told."""
    assert view.sentence(member.decision).isprintable()
    assert len(view.row(_MADE, 1, member, False, None)) == 5 + len(_SWEEP)


_Read = Callable[[PopulationFolder, bytes], str | None]
_FILES: list[tuple[dict[str, Any], _Read]] = [(_POPULATION, _resume), (_DECISION, _look)]
_KINDS = pytest.mark.parametrize(("whole", "read"), _FILES)


@pytest.mark.parametrize(
    ("whole", "read", "edited"), [(*each, fuzzing.edits(each[0])) for each in _FILES]
)
@given(data=st.data())
def test_an_edited_file_is_one_or_is_refused(
    data: st.DataObject,
    whole: Any,
    read: _Read,
    edited: st.SearchStrategy[Edits],
    folder: PopulationFolder,
) -> None:
    edits = data.draw(edited)
    refused = read(folder, json.dumps(fuzzing.edited(whole, edits)).encode())
    names = {name for path, _ in edits for name in path}
    assert refused is None or any(fuzzing.quotes(refused, name) for name in names), refused


@_KINDS
@given(said=JSON)
def test_any_other_json_is_refused(
    said: Any, whole: Any, read: _Read, folder: PopulationFolder
) -> None:
    assert read(folder, json.dumps(said).encode())


@_KINDS
@given(share=st.floats(0, 1), more=st.binary(max_size=5))
def test_a_part_of_a_file_is_refused(
    share: float, more: bytes, whole: Any, read: _Read, folder: PopulationFolder
) -> None:
    text = json.dumps(whole, indent=2).encode()
    cut = int(share * len(text))
    assert read(folder, text[:cut] + more) or cut == len(text)
