"""Recurrent SAC as it can be named: its log's columns, its values on two cores."""

from typing import Any

from agents.entry import Entry, Kind, Values, imported
from agents.rsac import config

_COLUMNS = {
    "loss": "½ w Σ_i (y − Q_i)² of both critics, the mean of a batch's rows",
    "gradient_norm": "of the critics' gradient before it is clipped",
    "policy_loss": "w (α log π − min_i Q_i), the mean of a batch's rows",
    "policy_gradient_norm": "of the policy's gradient before it is clipped",
    "temperature": "α, the weight of entropy beside reward",
    "entropy": "of the policy, in nats, by one action a step; of actions scaled to [-1, 1]",
    "mean_q": "min_i Q_i of the actions taken",
    "mean_target": "y, the targets of those",
    "mean_abs_td": "|y − min_i Q_i|",
    "mean_priority": "p, by which an item is drawn again",
}

# Values on two cores.
_CONTROL: dict[str, Any] = dict(
    hidden_sizes=(64,),
    lstm_size=64,
    head_hidden_sizes=(128,),
    burn_in=8,
    length=32,
    period=16,
    replay_size=20_000,
    min_replay_size=100,
    batch_size=16,
    samples_per_insert=16.0,
    learning_rate=1e-3,
    variable_update_period=16,
)

LOCAL: dict[Kind, Values] = dict(control=_CONTROL, control_image=_CONTROL | dict(torso="shallow"))

ENTRIES = {
    "rsac": Entry(
        config.CONTROL,
        imported("agents.rsac.builder:make"),
        control=config.CONTROL,
        control_image=config.CONTROL_IMAGE,
        local=LOCAL,
        columns=_COLUMNS,
        networks=2,
    )
}
