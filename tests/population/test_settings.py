"""The settings of a population: their defaults, their limits, and their file."""

import json
import math
import os
import pathlib
import stat
from collections.abc import Callable
from typing import Any

import pytest

from agents import fields
from agents.impala.entry import evolved
from population import ranges, settings
from population.folder import PopulationFolder
from population.settings import Population
from run_folder import catalogue
from run_folder.settings import SettingsError
from tests.population.populations import settings_of


def test_the_defaults_are_the_papers() -> None:
    """Espeholt et al. 2018, Appendix E; Hessel et al. 2018, Table 8."""
    declared = fields.declared(Population)
    defaults = dict(
        members=24,
        burn_in_frames=20_000_000,
        ready_episodes=5_000,
        margin=0.05,
        mutation_probability=0.33,
        mutation_factor=1.2,
        evolve="all",
    )
    assert {name: declared[name].default for name in defaults} == defaults
    for agent, members in (("impala", 24), ("popart", 8), ("multihead_impala", 8), ("r2d2", 24)):
        assert settings.default_members(agent, "atari57") == 24
        for env in ("dmlab30", "dmlab:rooms_watermaze"):
            assert settings.default_members(agent, env) == members


def test_members_have_seeds_that_no_neighbouring_population_has() -> None:
    populations = [settings_of(seed=seed) for seed in (0, 1, 2, 2**63 - 1)]
    seeds = [each.seed_of(member) for each in populations for member in range(24)]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) >= 0
    assert max(seeds) < 2**31  # as those that a run derives
    assert settings_of(seed=2).seed_of(3) == settings_of(seed=2, members=24).seed_of(3)


@pytest.mark.parametrize("agent", ["impala", "popart", "multihead_impala"])
def test_what_the_papers_tune_begins_where_theirs_did(agent: str) -> None:
    """Espeholt et al. 2018, Table C.1; Hessel et al. 2018, Table 9."""
    tuned = dict(
        entropy_cost=("log", (5e-5, 1e-2)),
        learning_rate=("log", (5e-6, 5e-3)),
        rmsprop_epsilon=("choice", (1e-1, 1e-3, 1e-5, 1e-7)),
    )
    clipped = dict(max_gradient_norm=("uniform", (10.0, 100.0)))
    for env, expected in (("atari57", tuned | clipped), ("dmlab30", tuned), ("catch", tuned)):
        declared = fields.declared(type(catalogue.config(agent, env)))
        swept = settings.default_sweep(agent, env)
        found = {name: ranges.parse(name, text, declared) for name, text in swept.items()}
        assert {name: (each.kind, each.values) for name, each in found.items()} == expected
        assert all(each.mutates for each in found.values())


def test_of_other_agents_the_papers_tune_nothing() -> None:
    tuned = {name for name in catalogue.AGENTS if settings.default_sweep(name, "catch")}
    assert tuned == {name for name, entry in catalogue.AGENTS.items() if entry.evolved is evolved}
    assert {"impala", "popart"} <= tuned
    assert not {"r2d2", "stac", "stacx", "rsac"} & tuned


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(members=1), "--members must be a whole number from 2 to 1,000, got 1."),
        (dict(sweep={}), "--sweep must give a field at least."),
        (dict(sweep=dict(lerning_rate="log:1e-5:1")), "--sweep: 'lerning_rate' is no field here."),
        (dict(evolve="discount"), "--evolve=discount names 'discount', which --sweep gives no"),
        (
            dict(sweep=dict(correction="grid:vtrace,none"), members=4),
            "--sweep=correction=grid: is for members that stay apart: add --evolve=none, or use",
        ),
        (
            dict(sweep=dict(correction="grid:vtrace,none", rho_bar="grid:1,2"), evolve="none"),
            "--members must be a multiple of 4, the combinations of correction, rho_bar, got 3.",
        ),
        (
            dict(flags=dict(num_acters=3)),
            "'num_acters', no flag that members share. D",
        ),
        (dict(flags=dict(seed=3)), "'seed', no flag that members share."),
        (dict(flags=dict(max_minutes=3.0)), "'max_minutes', no flag that members share."),
        (dict(flags=dict(num_actors=0)), "--num_actors must be a whole number from 1"),
        (dict(overrides=dict(impala=dict(length=8))), "each text, got {'impala': {'length': 8}}."),
    ],
)
def test_what_a_population_cannot_be_is_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=r"[.?]$") as error:
        settings_of(**given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("evolve", "evolving", "mutable"),
    [
        ("all", ("learning_rate", "correction", "entropy_cost"), ("learning_rate", "entropy_cost")),
        ("none", (), ()),
        ("entropy_cost", ("entropy_cost",), ("entropy_cost",)),
        ("correction,entropy_cost", ("correction", "entropy_cost"), ("entropy_cost",)),
    ],
)
def test_some_fields_are_taken_over_and_of_these_some_are_multiplied(
    evolve: str, evolving: tuple[str, ...], mutable: tuple[str, ...]
) -> None:
    sweep = dict(
        learning_rate="log:1e-4:1e-2",
        correction="choice:vtrace,none",
        entropy_cost="uniform:0:0.1",
    )
    found = settings_of(sweep=sweep, evolve=evolve)
    assert (found.evolving, found.mutable) == (evolving, mutable)
    assert found.evolves is (evolve != "none")


def test_a_member_with_as_many_steps_as_its_limit_is_at_it() -> None:
    found = settings_of(flags=dict(num_actors=4, max_actor_steps=100))
    assert found.is_at_limit(100, 0)
    assert not found.is_at_limit(99, math.nan)
    assert not settings_of().is_at_limit(10**9, 10**9)
    offline = settings_of(flags=dict(max_actor_steps=0, max_learner_steps=100))
    assert not offline.is_at_limit(0, 99)
    assert offline.is_at_limit(0, 100)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (dict(learning_rate=1e-3), "it must be of learning_rate, hidden_sizes, got ['learning_r"),
        (dict(learning_rate="1e-3", hidden_sizes=[64]), "learning_rate must be a number from"),
        (dict(learning_rate=0.0, hidden_sizes=[64]), "learning_rate must be a number from 1e-15"),
        (dict(learning_rate=1e-3, hidden_sizes=[0]), "hidden_sizes must be 1 to 64 layers"),
    ],
)
def test_what_a_members_values_can_be(values: dict[str, Any], said: str) -> None:
    sweep = dict(learning_rate="log:1e-4:1e-2", hidden_sizes="choice:64,128")
    found = settings_of(sweep=sweep, evolve="none")
    found.check(dict(learning_rate=1e-3, hidden_sizes=[64]))  # as JSON has a tuple
    with pytest.raises(ValueError, match=r"[.]$") as error:
        found.check(values)
    assert said in str(error.value)


def test_what_is_recorded_is_found_again(tmp_path: pathlib.Path) -> None:
    made = settings_of(margin=0.5, evolve="entropy_cost")
    folder = PopulationFolder(tmp_path / "a" / "population")
    settings.make_folder(folder)
    settings.record(folder, made)
    assert settings.load(folder.path) == made
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    before = folder.settings.stat()
    settings.record(folder, made)
    assert folder.settings.stat() == before  # whom another host may be reading
    changed = settings_of(margin=0.25, evolve="entropy_cost")
    settings.record(folder, changed)
    assert settings.load(folder.path) == changed


def test_what_another_host_records_at_once_is_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, folder = settings_of(margin=0.5), PopulationFolder(tmp_path / "population")
    settings.make_folder(folder)
    replace = os.replace

    def another_first(new: pathlib.Path, path: pathlib.Path) -> None:
        replace(new, path)
        replace(new, path)

    monkeypatch.setattr(os, "replace", another_first)
    settings.record(folder, made)
    assert settings.load(folder.path) == made


def test_a_folder_where_other_hosts_begin_is_vacant(tmp_path: pathlib.Path) -> None:
    for name in ("lock", "hosts/00/lock", "population.json.new"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    settings._check_vacant(tmp_path)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SettingsError, match="holds something already"):
        settings._check_vacant(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for name in ("file", "file/population"):
        with pytest.raises(SettingsError, match=r"--run_dir=.*file.* cannot be made: "):
            settings.make_folder(PopulationFolder(tmp_path / name))


def _edit(**changes: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **changes})


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: "[]", "population.json cannot be read: it must be an object, got []."),
        (
            _edit(members=1),
            "cannot be read: members must be a whole number from 2 to 1,000, got 1.",
        ),
        (_edit(sweep=dict(rate="log:1:2")), "cannot be read: sweep: 'rate' is no field here"),
    ],
)
def test_an_edited_file_is_refused_by_name(
    edit: Callable[[str], str], said: str, tmp_path: pathlib.Path
) -> None:
    folder = PopulationFolder(tmp_path)
    settings.record(folder, settings_of())
    folder.settings.write_text(edit(folder.settings.read_text()))
    with pytest.raises(SettingsError, match=r"[.?]$") as error:
        settings.load(tmp_path)
    assert said in str(error.value)


def test_a_folder_without_one_holds_no_population(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(SettingsError, match=rf"{path} holds no population: there is no .*\."):
            settings.load(path)
    (tmp_path / "population.json").mkdir()
    with pytest.raises(SettingsError, match=r"population\.json cannot be read: Is a directory\."):
        settings.load(tmp_path)
