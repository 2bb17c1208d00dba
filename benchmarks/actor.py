"""Acting: python -m benchmarks.actor --agent=r2d2 --num_environments=1,16,64,256 [--peer=acme]

For every number of environments the environments alone, inference alone, and both as an actor's
loop runs them. Nothing is written and no parameters are fetched.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import gymnasium
import numpy as np
from absl import flags

from agents.actor import RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from benchmarks import command_line, counts, timing
from benchmarks.peer import Peer
from benchmarks.report import Report, figure
from benchmarks.subject import GAME, Subject
from benchmarks.timing import Contestant
from environments import suites
from replay.structures import MID

_SEED = 0
_NUM_ENVIRONMENTS = counts.define(
    "num_environments", [1, 16, 64, 256], "Environments that share a forward pass."
)
_PEER = flags.DEFINE_enum(
    "peer", None, ["acme", "acme_unpadded"], "Whose inference alternates with ours for one."
)


def main(_: Sequence[str]) -> None:
    measured = command_line.agent()
    settings = {"num_environments": _NUM_ENVIRONMENTS.value, "peer": _PEER.value}
    report = Report("actor", measured.settings | settings)
    for count in _NUM_ENVIRONMENTS.value:
        _measure(measured, count, report)
    if _PEER.value:
        _measure_peer(measured, report)
    report.print()


def _measure(measured: Subject, count: int, report: Report) -> None:
    with contextlib.closing(suites.make(GAME, count, seed=_SEED)) as environments:
        actor = _make_actor(measured, count)
        loop = VectorEnvironmentLoop(environments, actor, [GAME] * count)
        steps = {
            "environments": _play(environments, measured.spec.actions.num_values),
            "inference": _infer(measured, count),
            "both": loop.step,
        }
        rates = timing.alternate(
            {name: Contestant(timing.timed(step), count) for name, step in steps.items()}
        )
    for name, samples in rates.items():
        report.add(f"{name}, {count}", figure(samples, "steps/s"))
    # What one step costs in each part, one after the other.
    together = [
        1 / (1 / environment + 1 / inference)
        for environment, inference in zip(rates["environments"], rates["inference"], strict=True)
    ]
    shares = [100 * share for share in timing.ratios(rates["both"], together)]
    report.add(f"share of the parts, {count}", figure(shares, "%"))


def _measure_peer(measured: Subject, report: Report) -> None:
    settings = {
        "config": dataclasses.asdict(measured.agent.config),
        "num_actions": measured.spec.actions.num_values,
        "image": measured.image,
        "acme_unpadded": _PEER.value == "acme_unpadded",
    }
    with Peer("acme_actor", settings) as peer:
        report.add_versions(peer.versions)
        ours = Contestant(timing.timed(_infer(measured, 1)), 1)
        rates = timing.alternate({"ours": ours, "peer": Contestant(peer.run, 1)})
    report.add("peer's inference, 1", figure(rates["peer"], "steps/s"))
    report.add("inference to peer's, 1", figure(timing.ratios(rates["ours"], rates["peer"]), "x"))


def _make_actor(measured: Subject, count: int) -> RecurrentActor:
    agent = measured.agent
    network = agent.make_network(measured.spec)
    return RecurrentActor(
        agent.make_policy(network, np.arange(count), count, _SEED),
        network.initial_state(count),
        num_environments=count,
        frame_stack=agent.frame_stack,
        actions=network.actions,
        resets_on_life_loss=agent.resets_on_life_loss,
    )


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
    command_line.run(main, ["num_environments"], ["peer"])
