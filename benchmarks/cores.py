"""Cores under R2D2's four ways to recover a state: Kapturowski et al. 2019, Figures 1 and 2, small.

    python -m benchmarks.cores

trains what docs/data/cores.csv does not hold yet, then draws all of it and writes it into
docs/cores.md. Actors and learner take turns in one process, so a run follows from its seed.
"""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from agents.actor import make_actor
from agents.contract import Agent, Network
from agents.environment_loop import VectorEnvironmentLoop
from agents.networks.named import CORES
from agents.single_process import SingleProcessAgent
from benchmarks import figures, study, training
from benchmarks.study import DOCS
from benchmarks.training import Grid
from environments.copies.spec import spec_of
from environments.small_tasks import NUM_CUES, Recall
from r2d2.agent import Config, make
from r2d2.diagnosis import Played, Recorder, Strategy, cut_sequences, q_discrepancies

DATA = DOCS / "data/cores.csv"
PAGE = DOCS / "cores.md"
SEEDS = range(3)
NUM_ENVIRONMENTS = 32
UPDATES = 2_000
LAG = 100  # updates between the parameters that play and those that look back
SEQUENCES = 500  # that are looked back at
EPISODES = 200  # of the evaluation

STEPS = 40  # of an episode: an item in the midst of one is far from the cue
LENGTH = 10

CONFIG: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(32,),
    lstm_size=32,
    head_size=32,
    frame_stack=1,
    length=LENGTH,
    period=LENGTH // 2,
    batch_size=32,
    replay_size=5_000,
    min_replay_size=200,
    samples_per_insert=4.0,
    learning_rate=2e-3,
    adam_epsilon=1e-5,
    target_update_period=50,
    n_step=1,
    discount=0.9,
)


class Hold(Recall):
    """N episodes of holding on to a cue that was shown once.

    The first observation shows one of `NUM_CUES` cues and a flag; each later one shows a cue at
    random without the flag. Every action that names the first cue earns 1. An episode ends after
    `STEPS` steps; the best return is `STEPS`, and without a memory 1 + (STEPS − 1) / NUM_CUES.

    Observations are float32 [NUM_CUES + 1]: a cue as one-hot, then the flag.
    """

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._time += 1
        return actions == self._cue, self._time == STEPS

    def _observe(self) -> np.ndarray:
        first = self._time == 0
        shown = np.where(first, self._cue, self.np_random.integers(NUM_CUES, size=self.num_envs))
        return np.c_[np.eye(NUM_CUES)[shown], first].astype(np.float32)


class Run(NamedTuple):
    """The settings by which one training differs from the others."""

    core: str
    stored: int  # 1 where items begin with the stored state, 0 where with zero
    burn_in: int
    seed: int


class Result(NamedTuple):
    """The outcome of a training."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training
    first_discrepancy: float  # ΔQ at the first trained step, the mean over sequences
    last_discrepancy: float  # at the last one


WAYS = {
    f"{'stored' if stored else 'zero'} state, burn-in {burn_in}": dict(
        stored=stored, burn_in=burn_in
    )
    for stored in (0, 1)
    for burn_in in (0, LENGTH // 2)
}
GRID = Grid("", WAYS, {core: dict(core=core) for core in CORES})
RUNS = training.runs(Run, [GRID], SEEDS)
MEASURES = {
    "final_return": "return after training",
    "first_discrepancy": "ΔQ, first trained step",
    "last_discrepancy": "ΔQ, last trained step",
}


def train(run: Run) -> Result:
    """Trains, evaluates, and looks back at what was played `LAG` updates before the end."""
    config = Config(**CONFIG, core=run.core, stored_state=bool(run.stored), burn_in=run.burn_in)
    made, environments = make(config), _seeded(NUM_ENVIRONMENTS, run.seed)
    spec = spec_of(environments.single_observation_space, environments.single_action_space)
    agent = SingleProcessAgent(made, spec, num_environments=NUM_ENVIRONMENTS, seed=run.seed)
    returns: list[float] = []

    def learn(updates: int) -> None:
        while agent.learner.learner_steps < updates:
            ended = agent.learn(environments, NUM_ENVIRONMENTS)
            returns.extend(episode.episode_return for episode in ended)

    learn(UPDATES - LAG)
    network = agent.learner_update.network
    played = _play(made, network, run.seed)
    learn(UPDATES)
    cuts = cut_sequences(played, config.layout, SEQUENCES, run.seed)
    strategy = Strategy(config.stored_state, run.burn_in)
    found = q_discrepancies(network, played, cuts, [strategy], config.frame_stack)[strategy]
    episodes = agent.evaluate(_seeded(EPISODES, run.seed + 1_000), EPISODES, seed=run.seed)
    return Result(
        agent.actor_steps,
        float(np.mean([episode.episode_return for episode in episodes])),
        float(np.mean(returns)),
        float(np.mean(found.first)),
        float(np.mean(found.last)),
    )


def _seeded(count: int, seed: int) -> Hold:
    environments = Hold(count)
    environments.reset(seed=seed)  # whoever resets them next goes on with its numbers
    return environments


def _play(agent: Agent, network: Network, seed: int) -> Played:
    """Several episodes of each environment, with the epsilons of all actors."""
    ranks, recorder = np.arange(NUM_ENVIRONMENTS), Recorder()
    policy = agent.make_policy(network, ranks, NUM_ENVIRONMENTS, seed)
    actor = make_actor(agent, network, policy, num_environments=NUM_ENVIRONMENTS, writer=recorder)
    environments = _seeded(NUM_ENVIRONMENTS, seed + 2_000)
    loop = VectorEnvironmentLoop(environments, actor, ["hold"] * NUM_ENVIRONMENTS)
    for _ in range(5 * STEPS):
        loop.step()
    return recorder.played(resets_on_life_loss=False)


def draw(results: dict[Run, Result], path: pathlib.Path) -> None:
    """A panel for each measure: cores from left to right, a line for each way."""
    style = dict(linestyle="none", marker="o")
    panels = [
        training.panel(GRID._replace(title=title), results, measure, 0.08, **style)
        for measure, title in MEASURES.items()
    ]
    panels[0] = panels[0]._replace(legend={})
    figures.draw(panels, path, (11.0, 3.6), dpi=130)


def block(results: dict[Run, Result]) -> str:
    """In Markdown: the plot, and a table for each measure."""
    tables = [GRID._replace(title=title).table(results, m) for m, title in MEASURES.items()]
    return "\n\n".join(
        ["![Four ways to recover a state, for each core](images/cores.png)", *tables]
    )


def tell(results: dict[Run, Result], page: pathlib.Path = PAGE) -> None:
    """Draws everything beside a page, and writes it into that."""
    draw(results, page.parent / "images" / "cores.png")
    page.write_text(study.replace_block(page.read_text(), "cores", block(results)))


if __name__ == "__main__":
    study.positional(__doc__)
    tell(study.complete(DATA, RUNS, train, Result))
