"""Each plot of runs is drawn from logs with the columns that runs write."""

import csv
import json
import pathlib

import matplotlib.image
import numpy as np
import pytest

from benchmarks import plot
from run_folder.layout import RunFolder
from tests.run_folder import saved_runs

ROWS = 40
RETURN = "episode_return"


def _run(path: pathlib.Path, agent: str, env: str, **logs: list[str]) -> str:
    """A run folder with logs of these columns, a row every ten seconds."""
    path.mkdir()
    (path / "config.json").write_text(saved_runs.settings_of(path, agent, env).to_json())
    folder = RunFolder(path)
    folder.logs.mkdir()
    for label, columns in logs.items():
        with folder.log(label.replace("_", "-")).open("w", newline="") as file:
            writer = csv.writer(file)
            texts = ["task"] if label == "episodes" else []
            writer.writerow(["walltime", "actor_steps", *columns, *texts])
            for i in range(ROWS):
                values = [np.sin(i + j) for j in range(len(columns))]
                writer.writerow([10.0 * i, 100.0 * i, *values, *("catch" for _ in texts)])
    return str(path)


def _arguments(name: str, folder: pathlib.Path) -> list[str]:
    run, tasks = folder / "run", ["catch", "memory:recall"]
    of_tasks = [f"return/{task}" for task in tasks]
    if name == "run":
        return [_run(run, "r2d2", "catch", actor=[RETURN], evaluator=[RETURN])]
    if name == "hosts":
        found = _run(run, "r2d2", "catch", episodes=[RETURN], evaluator=[RETURN])
        (run / "events.json").write_text(json.dumps([[20, "a kill"], [20, "a cable"]]))
        return [found]
    if name == "learners":
        columns = ["learner_steps", "loss", "parameter_lag"]
        return [_run(run, "r2d2", "catch", learner_r2d2=columns, learner_impala=columns)]
    if name == "popart":
        statistics = [f"{of}/{task}" for task in tasks for of in ("mu", "sigma")]
        popart = _run(run, "popart", ",".join(tasks), learner_popart=statistics, tasks=of_tasks)
        return [popart, _run(folder / "other", "popart", ",".join(tasks), tasks=of_tasks)]
    if name == "dmlab":
        levels = [_run(folder / i, "r2d2", "catch", episodes=[RETURN]) for i in "ab"]
        columns = ["mean_normalised", "normalised_tasks"]
        return [*levels, _run(run, "popart", ",".join(tasks), tasks=columns)]
    for agent in ("impala", "stacx"):
        for seed in (1, 2):
            logs = dict(episodes=[RETURN], learner_stacx=plot._TUNED)
            _run(folder / f"{agent}-{seed}", "impala", "catch", **logs)
    return [str(folder)]


@pytest.mark.parametrize("name", plot.PLOTS)
def test_a_plot_is_drawn(name: str, tmp_path: pathlib.Path) -> None:
    image, data, given = tmp_path / "plot.png", tmp_path / "data.csv", _arguments(name, tmp_path)
    more = {"run": ["A title"], "stac_pong": [str(data)]}.get(name, [])
    plot.PLOTS[name](*given, str(image), *more)
    assert matplotlib.image.imread(image).std() > 0.03
    if more and name == "stac_pong":
        assert len(data.read_text().splitlines()) == 1 + 4 * 7  # minutes of two agents and seeds
