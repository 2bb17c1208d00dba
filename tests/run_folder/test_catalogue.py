"""Agents by name and by import path: what is found, and what is said of what is not."""

import pathlib
import re

import pytest

from agents.entry import Entry
from run_folder import building, catalogue, settings
from tests import extending

GIVEN = dict(env="catch", run_dir="/run", preset="local")
LONG = "A" * 65
MODULE = """
import dataclasses
from agents.contract import Agent
from agents.entry import Entry

@dataclasses.dataclass(frozen=True)
class Config:
    size: int = 1
    torso: str = "mlp"

NOTHING = 3
ENTRY = Entry(Config(), lambda config, name: "an agent")
Größe = ENTRY
{LONG} = ENTRY
RENAMED = Entry(Config(), lambda config, name: Agent("other", *[None] * 9))
""".replace("{LONG}", LONG)


@pytest.fixture
def package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "entries_of_a_test.py").write_text(MODULE)
    (tmp_path / "raises_in_a_test.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(extending.write(tmp_path))


def test_an_agent_of_ones_own_is_called_by_its_name(package: None) -> None:
    agents = f"impala,{extending.AGENT}"
    assert catalogue.names(agents) == {"impala": "impala", "REINFORCE": extending.AGENT}
    overrides = {"REINFORCE": {"discount": "0.25", "torso": extending.TORSO}}
    run = settings.resolve(GIVEN | dict(agent=agents), overrides)
    assert run.agents == ("impala", "REINFORCE")
    assert run.acting == ("impala", "REINFORCE")
    assert run.configs["REINFORCE"].discount == 0.25
    agent = building.make_agent(run, "REINFORCE")
    assert agent.tables[0].name == "REINFORCE"
    update = agent.make_update(building.environment_spec(run))
    assert 32 in [variable.shape[-1] for variable in update.network.trainable_variables]


def test_what_config_json_records_is_found_again(package: None, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    given = GIVEN | dict(agent=extending.AGENT, env=extending.TASK, run_dir=str(folder))
    run = settings.resolve(given, {"REINFORCE": {"discount": "0.25"}})
    run.folder.config.write_text(run.to_json())
    assert settings.load(folder) == run


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("r2d3", "'r2d3' is unknown; there are r2d2, .* Did you mean 'r2d2'?"),
        ("stacy", "Did you mean 'stac'?"),
        ("my package:A", "'my package:A' is unknown"),
        ("entries_of_a_test:", "'entries_of_a_test:' is unknown"),
        (
            "no_such_module:A",
            "such as my_package.agents:REINFORCE, got 'no_such_module:A'",
        ),
        ("no_such_module:A", "there is no module 'no_such_module' on PYTHONPATH"),
        ("raises_in_a_test:A", "importing 'raises_in_a_test' raises RuntimeError: no licence"),
        ("entries_of_a_test:ENTRI", "has no 'ENTRI', did you mean 'ENTRY'?"),
        ("entries_of_a_test:NOTHING", "must name an agents.entry.Entry, .* it is a int."),
        ("entries_of_a_test:Größe", "files and flags by 'Größe', which must be of at most 64"),
        (f"entries_of_a_test:{LONG}", f"files and flags by '{LONG}', which must be"),
        (f"{extending.AGENT},{extending.AGENT}", "names an agent twice"),
        ("r2d2,other_module:r2d2", "names an agent twice"),
    ],
)
def test_what_is_no_agent_is_refused(package: None, agent: str, said: str) -> None:
    with pytest.raises(settings.SettingsError) as error:
        settings.resolve(GIVEN | dict(agent=agent), {})
    assert agent.split(",")[0] in str(error.value)
    assert re.search(said, str(error.value)), error.value


@pytest.mark.parametrize(
    ("name", "said"),
    [("ENTRY", "must give an agents.contract.Agent .* got 'an agent'"), ("RENAMED", "'other'")],
)
def test_an_entry_that_makes_no_agent_of_its_name_is_refused(
    package: None, name: str, said: str
) -> None:
    run = settings.resolve(GIVEN | dict(agent=f"entries_of_a_test:{name}"), {})
    with pytest.raises(ValueError, match=said):
        building.make_agent(run, name)


def test_every_agent_of_the_project_can_be_made_as_it_says() -> None:
    for name, entry in catalogue.AGENTS.items():
        assert isinstance(entry, Entry)
        agent = entry.make(catalogue.config(name, "atari:pong"), name)
        assert agent.name == name
        assert agent.is_recurrent == (agent.config.lstm_size > 0)
        for values in (*entry.local.values(), entry.shared):
            assert set(values) <= set(vars(agent.config))
        for field in (entry.num_tasks_field, entry.epsilon_field):
            assert field is None or hasattr(agent.config, field)
