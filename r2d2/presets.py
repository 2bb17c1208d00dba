"""R2D2 on two cores, where it learns something in an hour; docs/r2d2.md says how that was found."""

from typing import Any

from agents.entry import Kind, Values

# Small observations: a small network that is updated often. Items reach as far back as memory tasks
# of public suites ask, and a target has the one reward that its action decides; docs/r2d2.md.
_SMALL: dict[str, Any] = dict(
    torso="mlp",
    lstm_size=64,
    head_size=64,
    frame_stack=1,
    burn_in=8,
    length=32,
    period=16,
    replay_size=10_000,
    min_replay_size=200,
    batch_size=32,
    samples_per_insert=8.0,
    learning_rate=1e-3,
    adam_epsilon=1e-5,
    discount=0.99,
    n_step=1,
    target_update_period=50,
    variable_update_period=50,
)

_ATARI: dict[str, Any] = dict(
    torso="shallow",
    lstm_size=256,
    head_size=256,
    burn_in=8,
    length=32,
    period=16,
    replay_size=20_000,
    min_replay_size=400,
    batch_size=16,
    samples_per_insert=2.0,
    learning_rate=3e-4,
    adam_epsilon=1e-5,
    discount=0.99,
    target_update_period=200,
    variable_update_period=100,
)

_DMLAB = _ATARI | dict(replay_size=10_000)  # frames of three colours

# Of other images, which may be coloured, the core sees by itself what moves.
_IMAGE = _DMLAB | dict(frame_stack=1)

LOCAL: dict[Kind, Values] = dict(atari=_ATARI, dmlab=_DMLAB, image=_IMAGE, small=_SMALL)

# Its lstm_size, 0, is what makes it the variant.
FEEDFORWARD: dict[Kind, Values] = {
    kind: {name: value for name, value in values.items() if name != "lstm_size"}
    for kind, values in LOCAL.items()
}
