"""IMPALA on two cores, where it learns something in an hour; docs/impala.md has what it learned."""

from typing import Any

from agents.entry import Kind, Values

SMALL: dict[str, Any] = dict(
    torso="mlp",
    lstm_size=64,
    frame_stack=1,
    length=16,
    batch_size=8,
    queue_size=32,
    learning_rate=5e-3,
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
CONTROL: dict[str, Any] = dict(
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
    control=CONTROL,
    # The paper's torso would take more time of a core for a picture than rendering it.
    control_image=CONTROL | dict(torso="shallow"),
    # With so few unrolls the paper's rate drives an LSTM into saturation; docs/impala.md.
    image=IMAGE | _SMALL_BATCH | dict(learning_rate=2e-4),
    small=SMALL,
)
