"""What is known of members between their turns, and what they decide of it."""

import math
from typing import Any

import numpy as np
import pytest

from population import decisions, ranges, rule
from population.decisions import LABEL, Decision, State
from population.folder import PopulationFolder
from run_folder import checkpoints, log_reader, rewinding
from tests.population import populations
from tests.population.learners import again, saved
from tests.population.populations import AGENT, RETURNS, decision_of, log_episodes, settings_of


def _until_adopted(state: State, member: int, folder: PopulationFolder) -> Decision:
    """Lets a member decide until it adopts; decisions between change nothing else."""
    for _ in range(20):
        decision = state.decide(member)
        if decision.adopted is not None:
            return decision
    raise AssertionError("It adopted nothing.")


def test_a_member_begins_with_what_is_drawn(folder: PopulationFolder) -> None:
    population = settings_of(seed=4)
    state = State(population, folder)
    for member in range(3):
        found = state.begin(member)
        assert found.decision.new == ranges.draw(population.ranges, member, 4)
        assert (found.decision.number, found.decision.old) == (0, {})
        assert (found.manifest, found.actor_steps) == (None, 0)
        assert math.isnan(found.score)
        assert state.begin(member).decision == found.decision
        assert found.decision == State(settings_of(seed=5), folder).look(member).decision


def test_a_member_is_ready_by_frames_and_episodes_since_it_decided(
    folder: PopulationFolder,
) -> None:
    population = settings_of(env="atari:pong", burn_in_frames=400, ready_episodes=10)
    state = State(population, folder)
    first = state.begin(0).decision
    assert state.frames(100) == 400
    assert state.is_ready(first, 100, 10)
    assert not state.is_ready(first, 99, 10)
    assert not state.is_ready(first, 100, 9)
    assert not state.is_ready(decision_of(0, 1, episodes=1), 100, 10)
    apart = State(settings_of(evolve="none", burn_in_frames=0, ready_episodes=1), folder)
    assert not apart.is_ready(first, 10**9, 10**9)


def test_a_decision_is_the_rules(state: State, folder: PopulationFolder) -> None:
    population = settings_of()
    for member in (2, 1):
        before = [state.look(other) for other in range(3)]
        made = state.decide(member)
        said = rule.decide(
            population,
            member,
            list(RETURNS),
            [other.decision.new for other in before],
            population.evolving,
            population.mutable,
            lambda values: True,
            np.random.default_rng([0, member, 1, 1]),
            normalised=False,
        )
        assert (made.rival, made.adopted is not None, made.new) == said
        assert (made.number, made.old) == (1, before[member].decision.new)
        manifest = before[member].manifest
        assert manifest is not None
        assert before[member].score == RETURNS[member]  # the last hundred episodes
        assert (made.learner_step, made.episodes) == (manifest.learner_step, manifest.episodes)
        assert (made.score, made.rival_score) == (RETURNS[member], RETURNS[said.rival])
        assert populations.newest(folder, member) == made


def test_who_adopts_has_the_others_learner_and_values_and_no_score_yet(
    state: State, folder: PopulationFolder
) -> None:
    made = _until_adopted(state, 0, folder)
    assert made.rival is not None
    adopted, rival = (again(folder.member(member), 1.0) for member in (0, made.rival))
    assert adopted.values() == rival.values()
    assert (made.rival_learner_step, made.learner_step_after) == (rival.learner_steps, 6)
    assert adopted.learner_steps == 6
    old = decisions.of_member(folder, made.rival)[0].new
    for name, value in made.new.items():
        assert value / old[name] == pytest.approx(1.0, rel=0.21)
    assert made.actor_steps == 53  # until which its log is of the weights that it had
    found = state.look(0)
    assert math.isnan(found.score)
    assert found.actor_steps == 53  # so that the next episodes are counted after that
    log_episodes(folder.member(0), [(54, "catch", 0.25)])
    assert state.look(0).score == 0.25
    kept = state.decide(2)
    assert kept.adopted is None
    assert kept.actor_steps == 110
    assert state.look(2).score == 1.0  # it has the weights that it had


@pytest.mark.parametrize("missing", ["logs/episodes.csv", "checkpoints/manifest.json"])
def test_without_a_score_and_a_learner_nobody_is_adopted(
    missing: str, state: State, folder: PopulationFolder
) -> None:
    for member in (1, 2):
        (folder.member(member).path / missing).unlink()
    for _ in range(3):
        made = state.decide(0)
        assert (made.adopted, made.rival_score, made.rival_learner_step) == (None, None, None)


def test_who_comes_second_does_what_the_first_decided(
    state: State, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = decisions.write

    def write_after_another(folder: PopulationFolder, decision: Decision) -> bool:
        values = dict(learning_rate=2e-3, entropy_cost=0.001)
        other = Decision(
            **(vars(decision) | dict(adopted=None, rival_learner_step=None, new=values))
        )
        assert write(folder, other)
        return write(folder, decision)

    monkeypatch.setattr(decisions, "write", write_after_another)
    made = state.decide(0, has_failed=True)
    assert made.new == dict(learning_rate=2e-3, entropy_cost=0.001)
    assert made.adopted is None
    assert again(folder.member(0), 1.0).learner_steps == 5  # its own
    assert len(decisions.of_member(folder, 0)) == 2


def test_a_log_says_which_values_hold_from_which_update_on(
    state: State, folder: PopulationFolder
) -> None:
    made = [*decisions.of_member(folder, 0), state.decide(0, has_failed=True)]
    run = folder.member(0)
    log = log_reader.read(run.log(LABEL), texts=("adopted_from",))
    assert log["learner_steps"].tolist() == [0, 6]
    assert log["actor_steps"].tolist() == [0, 53]
    assert log["decision"].tolist() == [0, 1]
    assert log.texts["adopted_from"].tolist() == ["", str(made[1].rival)]
    for name in ("learning_rate", "entropy_cost"):
        assert log[name].tolist() == [decision.new[name] for decision in made]
    whole = run.log(LABEL).read_bytes()
    manifest = checkpoints.read(run.checkpoints)
    assert manifest is not None
    rewinding.rewind(run, {AGENT: manifest}, AGENT)  # as the next launch does after a kill
    assert run.log(LABEL).read_bytes() == whole


def test_values_of_every_kind_stand_in_a_row_each(folder: PopulationFolder) -> None:
    sweep = dict(
        correction="choice:vtrace",
        hidden_sizes="choice:64",
        period="choice:none",
        life_loss="choice:true",
    )
    State(settings_of(sweep=sweep), folder).begin(0)
    header, row = folder.member(0).log(LABEL).read_text().splitlines()
    assert header.split(",")[4:] == list(sweep)
    assert row.split(",") == ["0", "0", "0", "", "vtrace", "[64]", "None", "True"]


def _equals(folder: PopulationFolder, **given: Any) -> State:
    """Three members that play equally well."""
    state = State(settings_of(mutation_probability=1.0, **given), folder)
    for member in range(3):
        state.begin(member)
        saved(folder.member(member), member + 1.0, [1])
        log_episodes(folder.member(member), [(5, "catch", 0.5)])
    return state


def test_values_stay_together_what_a_config_takes(folder: PopulationFolder) -> None:
    """A c̄ of more than ρ̄, which is 1, would end the population."""
    state = _equals(folder, sweep=dict(c_bar="uniform:0.9:1"))
    seen = [state.decide(0).new["c_bar"] for _ in range(5)]
    assert max(seen) <= 1
    assert len(set(seen)) > 1


def test_a_value_that_limits_a_saved_replay_stays(folder: PopulationFolder) -> None:
    sweep = dict(samples_per_insert="uniform:1:2", learning_rate="log:1e-4:1e-3")
    state = _equals(folder, agent="r2d2", sweep=sweep)
    first = state.look(0).decision.new
    made = [state.decide(0).new for _ in range(2)]
    assert {new["samples_per_insert"] for new in made} == {first["samples_per_insert"]}
    assert first["learning_rate"] not in {new["learning_rate"] for new in made[:1]}
