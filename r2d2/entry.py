"""R2D2 and its variants as they can be named: their log's columns, their values on two cores."""

from typing import Any

from agents.entry import Entry, Kind, Values, imported
from r2d2.config import DMLAB_VARIANTS, VARIANTS

_COLUMNS = {
    "loss": "½ w δ² of the rescaled values, summed over an item's steps, the mean of the batch",
    "gradient_norm": "of the gradient before it is clipped",
    "mean_q": "Q of the actions taken, rescaled by h",
    "mean_target": "ŷ, the targets of those, rescaled by h",
    "mean_abs_td": "|δ|, between the two",
    "mean_priority": "p, by which an item is drawn again",
    "sigma": "σ of the errors, as the trust region and the normalised loss take it",
    "batch_sigma": "that of a batch alone",
    "learned_share": "the steps that the trust region lets be learned",
}


# Values on two cores, where R2D2 learns something in an hour; docs/r2d2.md says how that was found.
# Small observations: a small network that is updated often. Items hold a whole episode of 51 steps
# of remembering, its gates keep 0.98 of a state for a step at first, and a target has the one
# reward that its action decides.
_SMALL: dict[str, Any] = dict(
    torso="mlp",
    lstm_size=64,
    forget_bias=4.0,
    head_size=64,
    frame_stack=1,
    burn_in=8,
    length=64,
    period=32,
    replay_size=10_000,
    min_replay_size=200,
    batch_size=16,
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

_LOCAL: dict[Kind, Values] = dict(atari=_ATARI, dmlab=_DMLAB, image=_IMAGE, small=_SMALL)

# Its lstm_size, 0, is what makes it the variant, and a burn-in has no state to recover.
_FEEDFORWARD: dict[Kind, Values] = {
    kind: {name: value for name, value in values.items() if name not in ("lstm_size", "burn_in")}
    for kind, values in _LOCAL.items()
}


_PYTORCH = dict.fromkeys(("pytorch", "pytorch_tuned", "pytorch_compiled"), "pytorch:r2d2")
_ACME = {"acme": "acme:learner", "acme_unpadded": "acme:learner"}  # Acme has R2D2 alone

ENTRIES = {
    name: Entry(
        config,
        imported("r2d2.builder:make"),
        dmlab=DMLAB_VARIANTS[name],
        local=_LOCAL if config.lstm_size else _FEEDFORWARD,
        epsilon_field="evaluation_epsilon",
        columns=_COLUMNS,
        rivals=_ACME | _PYTORCH if name == "r2d2" else _PYTORCH,
        networks=2,
    )
    for name, config in VARIANTS.items()
}
