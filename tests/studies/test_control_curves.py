"""The curves of continuous control: what is trained, what is kept of it, and what is shown."""

import pathlib

import numpy as np
import pytest

from agents.environment_loop import Episode
from analysis.playing.files import File, Played
from run_folder.layout import RunFolder
from studies import control_curves, records
from studies.control_curves import FEATURES, PIXELS, RANDOM, Minute, Result, Run
from studies.curves import Episodes

RUN = Run(FEATURES, "stacx", 64, 2)
PLAYED = Played("stacx", 7, 4000, 150.0, None, None, 0)


def test_each_training_is_another() -> None:
    assert len(set(control_curves.RUNS)) == len(control_curves.RUNS)
    assert {run.env for run in control_curves.RUNS} == set(control_curves.ENVS)
    assert {(run.agent, run.lstm_size) for run in control_curves.RUNS} == set(control_curves.AGENTS)
    folders = [control_curves.folder_of(pathlib.Path("runs"), run) for run in control_curves.RUNS]
    assert len(set(folders)) == len(folders)


def test_what_is_kept_of_a_run(tmp_path: pathlib.Path) -> None:
    log = RunFolder(tmp_path).log("episodes")
    log.parent.mkdir()
    rows = ["10,100,3", "50,300,5", "130,900,8"]
    text = "\n".join(["walltime,actor_steps,episode_return", *rows])
    log.write_text(text + "\n")
    assert list(control_curves.minutes_of(tmp_path, RUN)) == [
        (Minute(*RUN, 0), Episodes(200.0, 4.0)),
        (Minute(*RUN, 2), Episodes(900.0, 8.0)),
    ]
    episodes = [Episode(0, 2.0, 100), Episode(1, 4.0, 100), Episode(2, 9.0, 100)]
    File(tmp_path, PLAYED).append(FEATURES, episodes)
    found = control_curves.result(tmp_path)
    assert (found.actor_steps, found.evaluated) == (4000, 5.0)
    assert found.standard_error == pytest.approx(np.sqrt((9 + 1 + 16) / 2 / 3))


def test_it_is_drawn_and_told(tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "images").mkdir()
    for minute, value in enumerate((30.0, 200.0)):
        records.append(
            data / "control_curves.csv", Minute(*RUN, minute), Episodes(10.0 * minute, value)
        )
    records.append(data / "control_returns.csv", RUN, Result(123_456, 300.4, 5.6))
    records.append(data / "control_returns.csv", Run(PIXELS, RANDOM, 0, 0), Result(0, 27.0, 1.0))
    control_curves.draw(tmp_path)
    assert (tmp_path / "images" / "control_curves.png").stat().st_size > 10_000
    assert control_curves.table(tmp_path).splitlines()[2:] == [
        f"| `{PIXELS}` | uniformly random actions |  | 0 | 27 ± 1 |",
        f"| `{FEATURES}` | STACX, LSTM of 64 | 2 | 123,456 | 300 ± 6 |",
    ]


def test_random_actions_are_played_to_their_end_and_again_alike() -> None:
    returns = control_curves.random_returns("gym:Pendulum-v1", 4)
    assert returns.shape == (4,)
    assert ((returns > -2_000) & (returns < -200)).all()  # 200 steps, of at most -16.3 each
    assert len(set(returns)) == 4
    np.testing.assert_array_equal(returns, control_curves.random_returns("gym:Pendulum-v1", 4))
