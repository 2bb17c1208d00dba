"""Progress as a coordinator writes it, of no run."""

from typing import Any


def progress(**changes: Any) -> dict[str, Any]:
    """The progress of a run of an hour, but for these changes."""
    counts = dict(
        actor_steps=12_345,
        learner_steps=678,
        episodes=90,
        trained_steps=5,
        walltime=3_725.0,
        environments_lost=0,
    )
    made = dict(
        state="running",
        reason="",
        counts=counts | changes.pop("counts", {}),
        limits=dict(actor_steps=None, learner_steps=None, walltime=None),
        goal=None,
        acting=[32, 32],
        rates=dict(actor_steps=830.4, learner_steps=6.25),
        replay_size=1_234,
        filling={},
        replays_per_observation=2.985,
        learners=dict(r2d2=dict(learner_steps=678, loss=0.12345, parameter_lag=17.5)),
        returns={"atari:pong": -20.25},
        aggregates={},
        evaluations=dict(r2d2=dict(learner_steps=600, episode_return=-19.5)),
        left_out={},
        notices=[],
        noticed=0,
    )
    return made | changes
