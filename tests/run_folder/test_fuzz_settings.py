"""A config.json gives a run's settings, or is refused by its name in a sentence."""

import functools
import json
import pathlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from run_folder import building, settings
from run_folder.settings import SettingsError
from tests import fuzzing
from tests.fuzzing import JSON, Edits
from tests.run_folder import saved_runs

_RUNS = ("r2d2", "popart", "stacx", "r2d2,impala")


@functools.cache
def _recorded(agent: str) -> dict[str, Any]:
    """The config.json of a run on catch."""
    said: dict[str, Any] = json.loads(saved_runs.resolve(agent).to_json())
    return said


_EDITS = st.sampled_from(_RUNS).flatmap(
    lambda agent: st.tuples(st.just(agent), fuzzing.edits(_recorded(agent)))
)


@given(edits=_EDITS)
def test_an_edited_config_json_is_a_run_or_is_refused(
    edits: tuple[str, Edits], tmp_path: pathlib.Path
) -> None:
    agent, made = edits
    refused = _read(tmp_path, json.dumps(fuzzing.edited(_recorded(agent), made)).encode())
    names = {name for path, _ in made for name in path}
    assert refused is None or any(fuzzing.quotes(refused, name) for name in names)


@given(said=JSON)
def test_any_other_json_is_refused(said: Any, tmp_path: pathlib.Path) -> None:
    assert _read(tmp_path, json.dumps(said).encode())


@given(agent=st.sampled_from(_RUNS), share=st.floats(0, 1), more=st.binary(max_size=5))
def test_a_part_of_a_config_json_is_refused(
    agent: str, share: float, more: bytes, tmp_path: pathlib.Path
) -> None:
    text = json.dumps(_recorded(agent), indent=2).encode()
    cut = int(share * len(text))
    refused = _read(tmp_path, text[:cut] + more)
    assert refused or cut == len(text)


def _read(folder: pathlib.Path, said: bytes) -> str | None:
    """Fails unless a config.json is a run that can be, or is refused; then returns the sentence."""
    (folder / "config.json").write_bytes(said)
    try:
        run = settings.load(folder)
    except SettingsError as error:
        said_of = f"{folder / 'config.json'} cannot be read: "
        fuzzing.check_sentence(str(error))
        return str(error).removeprefix(said_of)
    fuzzing.check_usable(run)
    assert list(building.make_agents(run)) == run.agent.split(",")
    (folder / "config.json").write_text(run.to_json())
    assert settings.load(folder) == run
    return None
