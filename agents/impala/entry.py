"""IMPALA as it can be named: its log's columns, its values on two cores, what populations tune."""

from collections.abc import Mapping
from typing import Any

from agents.entry import Entry, Kind, Values, imported
from agents.impala import config
from environments import suites

COLUMNS = {
    "loss": "what is minimised: the losses below with their costs, summed over a batch",
    "gradient_norm": "of the gradient before it is clipped",
    "policy_gradient_loss": "−ρ (r + γ v' − V) log π, summed over a batch",
    "baseline_loss": "½ (v − V)², summed over a batch, before its cost",
    "pixel_control_loss": "of pixel control, summed over a batch, before its cost",
    "entropy": "of the policy, in nats, the mean of a step",
    "standard_kl": "of a Gaussian policy from the standard one, in nats, the mean of a step",
    "mean_value": "V of the steps in the batch",
    "mean_rho": "ρ, the importance weight, truncated",
    "clipped_rho": "share of the steps whose weight is truncated",
    "learning_rate": "of RMSProp",
}

# Values on two cores, where IMPALA learns something in an hour; docs/impala.md has what it learned.
# Tasks of memory decide the small ones: gates that keep 0.98 of a state for a step, and unrolls as
# long as what is to be remembered.
SMALL: dict[str, Any] = dict(
    torso="mlp",
    lstm_size=64,
    forget_bias=4.0,
    frame_stack=1,
    length=64,
    batch_size=8,
    queue_size=32,
    learning_rate=1e-3,
    rmsprop_decay=0.9,  # of 0.99 the first 500 updates are slow
    rmsprop_epsilon=1e-3,
)

# Unrolls of 16, so that they and R2D2's items can be cut from blocks of 16 rows. Of several tasks a
# batch should hold all: so these are for any number of tasks, and only IMPALA's own is small.
ATARI: dict[str, Any] = dict(torso="shallow", length=16, rmsprop_epsilon=1e-3)
_SMALL_BATCH: dict[str, Any] = dict(batch_size=8, queue_size=32)

# Of images elsewhere, which may be coloured, the core sees by itself what moves.
IMAGE = ATARI | dict(frame_stack=1, lstm_size=256)

# The paper's entropy costs of DMLab reach from 5e-5 to 1e-2 (Table C.1): with the code's 2.5e-4 and
# unclipped gradients the policy lost most of its entropy within 300 updates.
DMLAB = ATARI | dict(entropy_cost=0.01, max_gradient_norm=40.0)

# Where actions are vectors: half of the paper's batch, of unrolls that overlap less, so that a step
# is learned from twice and not four times. Its gradient is clipped as elsewhere here.
_CONTROL: dict[str, Any] = dict(
    lstm_size=64, batch_size=12, period=20, queue_size=32, max_gradient_norm=40.0
)

# Where another agent's network acted its state is unknown: the first rows of an unroll recover one.
# On Atari there is no core.
SHARED: dict[str, Any] = dict(burn_in=16)

LOCAL: dict[Kind, Values] = dict(
    atari=ATARI | _SMALL_BATCH,
    # There it has a core, which longer unrolls teach to remember more. A step costs an engine 1
    # to 3 ms of a core, acting and learning 0.6 ms; with the deep torso it would be 4 ms.
    dmlab=DMLAB | _SMALL_BATCH | dict(length=32),
    control=_CONTROL,
    # The paper's torso would take more time of a core for a picture than rendering it.
    control_image=_CONTROL | dict(torso="shallow"),
    # With so few unrolls the paper's rate drives an LSTM into saturation; docs/impala.md.
    image=IMAGE | _SMALL_BATCH | dict(learning_rate=2e-4),
    small=SMALL,
)

RIVALS = dict.fromkeys(("pytorch", "pytorch_tuned", "pytorch_compiled"), "pytorch:impala")


def horizon(env: str) -> Values:
    """The frames after which the learning rate has fallen, and the frames of a step.

    Espeholt et al. 2018, Section 5.3.2: 200 million of one Atari game, and of each of 57 (F.1). A
    DMLab level has a billion (the authors' code), 30 levels ten billion (the code, and Hessel et
    al. 2018, Figures 6 and 7). Where actions are vectors it is 30 million (Zahavy et al. 2020,
    Table 3). For other environments nothing was published, and each has a game's.

    Args:
      env: name of an environment or suite.
    """
    num_tasks = len(suites.tasks(env))
    if suites.kind(env) == "dmlab":
        frames = min(num_tasks * 1_000_000_000, 10_000_000_000)
    else:
        frames = num_tasks * (30_000_000 if suites.is_continuous(env) else 200_000_000)
    return dict(annealing_frames=frames, frames_per_step=suites.frames_per_step(env))


def evolved(env: str) -> Mapping[str, str]:
    """The ranges of the fields that the papers' populations tune.

    Espeholt et al. 2018, Table C.1; Hessel et al. 2018, Table 9. Only the second gives a range of
    the gradient's norm, on Atari.

    Args:
      env: name of an environment or suite.
    """
    everywhere = dict(
        entropy_cost="log:5e-5:1e-2",
        learning_rate="log:5e-6:5e-3",
        rmsprop_epsilon="choice:1e-1,1e-3,1e-5,1e-7",
    )
    atari = dict(max_gradient_norm="uniform:10:100") if suites.kind(env) == "atari" else {}
    return everywhere | atari


ENTRIES = {
    "impala": Entry(
        config.ATARI,
        imported("agents.impala.builder:make"),
        dmlab=config.DMLAB,
        control=config.CONTROL,
        control_image=config.CONTROL_IMAGE,
        of_env=horizon,
        local=LOCAL,
        shared=SHARED,
        all_dmlab_actions=False,
        columns=COLUMNS,
        evolved=evolved,
        rivals=RIVALS,
    )
}
