"""Acting: python -m benchmarks.actor --agent=r2d2 --num_environments=1,16,64,256 [--peer=acme]

For every number of environments the environments alone, inference alone, and both as an actor's
loop runs them. Nothing is written and no parameters are fetched.
"""

import contextlib
from collections.abc import Callable

import gymnasium
import numpy as np
from absl import flags

from agents.actor import RecurrentActor, make_actor
from agents.environment_loop import VectorEnvironmentLoop
from benchmarks import measuring
from benchmarks.measuring import Contestant, Report, figure, ratios, timed
from benchmarks.rival import Rival
from benchmarks.subject import GAME, Subject
from environments import suites
from replay.structures import MID

_SEED = 0
_NUM_ENVIRONMENTS = measuring.define_counts(
    "num_environments", [1, 16, 64, 256], "Environments that share a forward pass."
)
_PEER = flags.DEFINE_enum(
    "peer", None, ["acme", "acme_unpadded"], "Whose inference alternates with ours for one."
)


def main(measured: Subject, report: Report) -> None:
    for count in _NUM_ENVIRONMENTS.value:
        _measure(measured, count, report)
    if _PEER.value:
        _measure_rival(measured, report)


def _measure(measured: Subject, count: int, report: Report) -> None:
    with contextlib.closing(suites.make(GAME, count, seed=_SEED)) as environments:
        loop = VectorEnvironmentLoop(environments, _make_actor(measured, count), [GAME] * count)
        steps = {
            "environments": _play(environments, measured.spec.actions.num_values),
            "inference": _infer(measured, count),
            "both": loop.step,
        }
        rates = measuring.alternate(
            {name: Contestant(timed(step), count) for name, step in steps.items()}
        )
    for name, samples in rates.items():
        report.add(f"{name}, {count}", figure(samples, "steps/s"))
    # The cost of one step in each part, one after the other.
    parts = zip(rates["environments"], rates["inference"], strict=True)
    together = [1 / (1 / environment + 1 / inference) for environment, inference in parts]
    shares = ratios(rates["both"], together, 100)
    report.add(f"share of the parts, {count}", figure(shares, "%"))


def _measure_rival(measured: Subject, report: Report) -> None:
    with Rival("acme:actor", measuring.of_rival(measured, _PEER.value or "")) as rival:
        report.add_versions(rival.versions)
        ours = Contestant(timed(_infer(measured, 1)), 1)
        rates = measuring.alternate({"ours": ours, "peer": Contestant(rival.run, 1)})
    report.add("peer's inference, 1", figure(rates["peer"], "steps/s"))
    report.add("inference to peer's, 1", figure(ratios(rates["ours"], rates["peer"]), "x"))


def _make_actor(measured: Subject, count: int) -> RecurrentActor:
    agent = measured.agent
    network = agent.make_network(measured.spec)
    policy = agent.make_policy(network, np.arange(count), count, _SEED)
    return make_actor(agent, network, policy, num_environments=count)


def _play(environments: gymnasium.vector.VectorEnv, num_actions: int) -> Callable[[], object]:
    environments.reset()
    rng = np.random.default_rng(_SEED)
    return lambda: environments.step(rng.integers(num_actions, size=environments.num_envs))


def _infer(measured: Subject, count: int) -> Callable[[], object]:
    actor = _make_actor(measured, count)
    shape = (count, *measured.spec.observations.shape)
    frames = np.random.default_rng(_SEED).integers(256, size=shape, dtype=np.uint8)
    middle, lives = np.full(count, MID, np.uint8), np.zeros(count, np.uint8)
    reward, continuation = np.zeros(count, np.float32), np.ones(count, np.float32)

    def step() -> None:
        actor.act(frames, middle, lives)
        actor.observe(reward, continuation)

    return step


if __name__ == "__main__":
    measuring.run(main, ["num_environments"], ["peer"])
