"""The study of cores: its task, its runs, its page."""

import itertools
import math
import pathlib

import numpy as np
import pytest

from agents.networks.named import CORES
from benchmarks import cores
from environments.small_tasks import NUM_CUES


def test_only_a_memory_of_the_first_cue_is_paid_to_the_end() -> None:
    environments = cores.Hold(500)
    observations, _ = environments.reset(seed=0)
    assert (observations[:, -1] == 1).all()
    cue = observations[:, :-1].argmax(axis=1)
    remembered, seen = np.zeros(500), np.zeros(500)
    for t in range(cores.STEPS):
        shown = observations[:, :-1].argmax(axis=1)
        seen += shown == cue
        observations, rewards, terminated, _, _ = environments.step(cue)
        remembered += rewards
        assert (terminated == (t == cores.STEPS - 1)).all()
        assert (observations[:, -1] == 0).all()
    assert (remembered == cores.STEPS).all()
    memoryless = 1 + (cores.STEPS - 1) / NUM_CUES  # who names what it sees, or always one
    assert seen.mean() == pytest.approx(memoryless, abs=0.5)
    observations, _, _, _, _ = environments.step(cue)
    assert (observations[:, -1] == 1).all()


def test_every_core_is_trained_in_every_way() -> None:
    ways = {(run.stored, run.burn_in) for run in cores.RUNS}
    assert ways == {(0, 0), (0, 5), (1, 0), (1, 5)}
    asked = {(*way, core, seed) for way in ways for core in CORES for seed in range(3)}
    assert {(r.stored, r.burn_in, r.core, r.seed) for r in cores.RUNS} == asked
    assert len(cores.RUNS) == len(asked)


def test_a_run_is_trained_played_and_looked_back_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in dict(UPDATES=20, LAG=6, SEQUENCES=20, EPISODES=4).items():
        monkeypatch.setattr(cores, name, value)
    found = cores.train(cores.Run("mingru", 1, 5, 0))
    assert cores.train(cores.Run("mingru", 1, 5, 0)) == found  # it follows from the seed
    assert 0 <= found.final_return <= cores.STEPS
    assert found.first_discrepancy > 0
    assert cores.train(cores.Run("mingru", 0, 0, 0)).first_discrepancy > found.first_discrepancy


def test_a_page_is_written_of_all_results(tmp_path: pathlib.Path) -> None:
    results = {
        run: cores.Result(1, 10.0 * run.stored + run.seed, 0.0, 0.5, 0.25) for run in cores.RUNS
    }
    page = tmp_path / "cores.md"
    page.write_text("before\n<!-- cores: begin -->\nold\n<!-- cores: end -->\nafter\n")
    cores.tell(results, page)
    text = page.read_text()
    assert (tmp_path / "images" / "cores.png").is_file()
    assert "old" not in text
    margin = f"{4.303 / math.sqrt(3):.2f}"
    for way, column in itertools.product(("zero", "stored"), (0, 5)):
        mean = f"{10 * (way == 'stored') + 1:.2f} ± {margin}"
        assert f"| {way} state, burn-in {column} | {' | '.join([mean] * len(CORES))} |" in text
