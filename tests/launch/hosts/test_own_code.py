"""The code of a user's own that a run names goes with its job, and no other does."""

import pathlib
from typing import Any

import pytest

from launch.hosts import artefact, own_code
from run_folder import settings
from tests import extending

GIVEN: dict[str, Any] = dict(agent=extending.AGENT, env="catch", preset="local", num_actors=4)


@pytest.fixture
def package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = extending.write(tmp_path / "path")
    (folder / "alone_in_a_test.py").write_text("from my_package.torsos import Waves\n")
    (folder / "my_package" / "table.csv").write_text("1,2\n")
    (folder / "my_package" / "__pycache__").mkdir()
    (folder / "my_package" / "__pycache__" / "x.pyc").touch()
    monkeypatch.syspath_prepend(folder)
    extending.forget("my_package", monkeypatch)
    return folder


def _run(tmp_path: pathlib.Path, **given: Any) -> settings.Settings:
    overrides = {"REINFORCE": {"torso": "alone_in_a_test:Waves"}}
    values = GIVEN | dict(run_dir=str(tmp_path / "run")) | given
    return settings.resolve(values, overrides if "REINFORCE" in values["agent"] else {})


@pytest.mark.parametrize(
    ("given", "modules"),
    [
        ({}, ["alone_in_a_test", "my_package"]),
        (dict(agent="impala"), []),
        (dict(agent="impala", env="memory:recall,catch:large_rewards"), []),
        (dict(agent="impala", env=extending.TASK), ["my_package"]),
        (dict(agent="impala", env="gym:CartPole-v1"), []),
    ],
)
def test_only_what_is_named_by_an_import_path_is_ones_own(
    package: pathlib.Path, tmp_path: pathlib.Path, given: dict[str, Any], modules: list[str]
) -> None:
    assert own_code.modules(_run(tmp_path, **given)) == modules


def test_a_job_holds_a_copy(package: pathlib.Path, tmp_path: pathlib.Path) -> None:
    artefact.write(_run(tmp_path), {}, tmp_path / "job")
    for pool in (tmp_path / "job").iterdir():
        own = {
            str(file.relative_to(pool))
            for top in ("my_package", "alone_in_a_test.py")
            for file in [pool / top, *(pool / top).rglob("*")]
            if file.is_file()
        }
        assert own == {
            "alone_in_a_test.py",
            *(f"my_package/{name}.py" for name in ("__init__", "agents", "tasks", "torsos")),
            "my_package/table.csv",
        }


def test_a_module_that_is_no_file_is_refused(tmp_path: pathlib.Path) -> None:
    run = _run(tmp_path, agent="impala", env="catch")
    object.__setattr__(run, "env", "sys:exit")
    with pytest.raises(settings.SettingsError, match="'sys' must be a file or a folder on PYTHON"):
        artefact.check_nodes(run)
