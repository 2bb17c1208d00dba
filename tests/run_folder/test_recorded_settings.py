"""config.json gives a run's settings back, or is refused by file and field."""

import dataclasses
import json
import pathlib
from typing import Any

import pytest

from environments.dmlab import environment as dmlab
from run_folder import catalogue, settings


def _given(**values: Any) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(settings.Settings) if f.name != "configs"]
    return dict.fromkeys(names) | dict(env="catch", run_dir="/run", preset="local") | values


def test_config_json_gives_the_settings_back(tmp_path: pathlib.Path) -> None:
    for name in catalogue.AGENTS:
        given = _given(agent=name, run_dir=str(tmp_path), max_actor_steps=7)
        run = settings.resolve(given, {name: {"hidden_sizes": "8,9"}})
        (tmp_path / "config.json").write_text(run.to_json())
        assert settings.load(tmp_path) == run


def test_a_run_folder_may_be_moved(tmp_path: pathlib.Path) -> None:
    run = settings.resolve(_given(agent="r2d2", run_dir=str(tmp_path / "before")), {})
    (tmp_path / "config.json").write_text(run.to_json())
    assert settings.load(tmp_path) == dataclasses.replace(run, run_dir=str(tmp_path))


def test_a_run_recorded_before_a_setting_was_there_has_its_default(tmp_path: pathlib.Path) -> None:
    run = settings.resolve(_given(agent="r2d2", run_dir=str(tmp_path)), {})
    said = json.loads(run.to_json())
    del said["num_replay_shards"], said["configs"]["r2d2"]["precision"]
    (tmp_path / "config.json").write_text(json.dumps(said))
    assert settings.load(tmp_path) == run


def test_a_number_without_a_point_is_a_float_where_one_belongs(tmp_path: pathlib.Path) -> None:
    run = settings.resolve(_given(agent="impala", run_dir=str(tmp_path)), {})
    said = json.loads(run.to_json())
    said["configs"]["impala"] |= dict(learning_rate=1, max_gradient_norm=40)
    (tmp_path / "config.json").write_text(json.dumps(said))
    config = settings.load(tmp_path).configs["impala"]
    assert [type(value) for value in (config.learning_rate, config.max_gradient_norm)] == [
        float
    ] * 2


def test_a_run_of_what_is_not_installed_here_is_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dmlab, "installed", lambda: True)
    env = "dmlab:seekavoid_arena_01"
    run = settings.resolve(_given(agent="r2d2", env=env, run_dir=str(tmp_path)), {})
    (tmp_path / "config.json").write_text(run.to_json())
    monkeypatch.setattr(dmlab, "installed", lambda: False)
    assert settings.load(tmp_path) == run


GONE = object()  # a field that is missing


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("env", None, "env must be text, got None"),
        ("env", GONE, "env is missing: it must be text"),
        ("env", "katch", "Unknown environment 'katch': did you mean catch?"),
        ("env", "catch,catch", "repeats 'catch'"),
        ("agent", "impala", "agent must be r2d2,popart, as configs are named, got 'impala'"),
        ("agent", ["r2d2"], "agent must be text, got ['r2d2']"),
        ("preset", "tiny", "preset must be one of local, paper, got 'tiny'"),
        ("preset", None, "preset must be text"),
        ("run_dir", 5, "run_dir must be text, got 5"),
        ("act_with", None, "act_with must be text, got None"),
        ("act_with", "impala", "act_with=impala names 'impala', but this run's agents are r2d2"),
        ("paced_by", {}, "paced_by must be text, got {}"),
        ("num_actors", 2.5, "num_actors must be a whole number, got 2.5"),
        ("num_actors", "32", "num_actors must be a whole number, got '32'"),
        ("num_actors", GONE, "num_actors is missing: it must be a whole number"),
        ("num_actors", 2**31, "num_actors must be a whole number from 1 to 100,000, got 2147"),
        ("max_actor_steps", "none", "max_actor_steps must be a whole number or None, got 'none'"),
        ("seed", True, "seed must be a whole number, got True"),
        ("seed", -1, "seed must be a whole number from 0 to"),
        ("evaluation_minutes", float("nan"), "evaluation_minutes must be a number, got nan"),
        ("checkpoint_minutes", float("inf"), "from 0.001 to 527,040, got inf"),
        ("full_action_space", 1, "full_action_space must be true or false, got 1"),
        ("act_with", "\ud800", "act_with must be text, got '"),
        ("evaluation_minutes", 10**400, "evaluation_minutes must be a number from 0.001"),
        ("num_actor", 3, "num_actor is no field here, the nearest is num_actors"),
        ("configs", [], "configs must be an object, each anything, got []"),
        ("configs", {}, "configs must be an object with a Config for each agent, got {}"),
        ("configs", {"r2d3": {}}, "agent must be r2d3, as configs are named, got 'r2d2,popart'"),
        ("configs.r2d2", None, "configs.r2d2 must be an object, got None"),
        ("configs.r2d2", [1], "configs.r2d2 must be an object, got [1]"),
        ("configs.r2d2.length", "16", "configs.r2d2.length must be a whole number, got '16'"),
        ("configs.r2d2.length", [16], "configs.r2d2.length must be a whole number, got [16]"),
        ("configs.r2d2.length", 0, "configs.r2d2.length must be a whole number from 1 to 4,096"),
        ("configs.r2d2.rescale", "yes", "configs.r2d2.rescale must be true or false, got 'yes'"),
        ("configs.r2d2.torso", "vgg", "configs.r2d2.torso must be one of dqn, shallow"),
        ("configs.r2d2.hidden_sizes", 8, "configs.r2d2.hidden_sizes must be several, each"),
        ("configs.r2d2.hidden_sizes", [8, "x"], "got [8, 'x']"),
        ("configs.r2d2.lenght", 16, "configs.r2d2.lenght is no field here, the nearest is length"),
        ("configs.popart.num_tasks", 2, "configs.popart.num_tasks must be 1, as many as"),
    ],
)
def test_an_edited_config_json_is_refused_by_file_and_field(
    where: str, value: Any, said: str, tmp_path: pathlib.Path
) -> None:
    run = settings.resolve(_given(agent="r2d2,popart", run_dir=str(tmp_path)), {})
    recorded = json.loads(run.to_json())
    *above, name = where.split(".")
    inner = recorded
    for key in above:
        inner = inner[key]
    inner[name] = value
    if value is GONE:
        del inner[name]
    _refused(tmp_path, json.dumps(recorded).encode(), said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"null", "it must be an object, got None"),
        (b"[]", "it must be an object, got []"),
        (b'"r2d2"', "it must be an object, got 'r2d2'"),
        (b"\xff", "can't decode byte 0xff"),
        (b"[" * 100_000, "its brackets are nested too deeply"),
    ],
)
def test_a_config_json_of_no_settings_is_refused(
    data: bytes, said: str, tmp_path: pathlib.Path
) -> None:
    _refused(tmp_path, data, said)


def test_a_config_json_that_is_a_folder_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(
        settings.SettingsError, match=r"config\.json cannot be read: Is a directory"
    ):
        settings.load(tmp_path)


def _refused(folder: pathlib.Path, data: bytes, said: str) -> None:
    """Checks that a config.json is refused in a sentence."""
    (folder / "config.json").write_bytes(data)
    with pytest.raises(settings.SettingsError) as error:
        settings.load(folder)
    assert str(error.value).startswith(f"{folder / 'config.json'} cannot be read: ")
    assert said in str(error.value)
    assert str(error.value).endswith(".")
    assert not str(error.value).endswith("..")


def test_config_json_holds_every_setting_by_name() -> None:
    run = settings.resolve(_given(agent="r2d2"), {})
    recorded = json.loads(run.to_json())
    assert set(recorded) == {f.name for f in dataclasses.fields(run)}
    fields = {f.name for f in dataclasses.fields(run.configs["r2d2"])}
    assert {name: set(values) for name, values in recorded["configs"].items()} == {"r2d2": fields}
