"""STAC, and STACX, which has auxiliary heads, as they can be named."""

from typing import Any

from agents.entry import Entry, Group, imported
from agents.impala import entry as impala
from agents.stac import config
from agents.stac.config import Config

_METAPARAMETERS = {
    "gamma": "γ, the discount",
    "lambda": "λ, of the traces",
    "g_v": "of the baseline loss; times `baseline_cost`",
    "g_p": "of the policy gradient; times `policy_gradient_cost`",
    "g_e": "of the entropy; times `entropy_cost`",
    "alpha": "α: 1 truncates importance weights as V-trace does, 0 leaves them",
    "alpha_rho": "α of ρ alone",
    "alpha_c": "α of the traces alone",
}

_COLUMNS = {
    **{name: meaning for name, meaning in impala.COLUMNS.items() if name != "pixel_control_loss"},
    "loss": "the inner loss, summed over a batch, the mean of the heads; below: the acting head's",
    "outer_loss": "what the metaparameters minimise: the fixed loss after the step, and its KL",
    "kl": "of the policy after the step from the one before, summed over a batch, before its cost",
    "metagradient_norm": "of the outer loss by all metaparameters, before their sigmoid",
    **{f"{name}_metagradient": f"the part of {name}, of all heads" for name in _METAPARAMETERS},
}

_GROUP = Group(
    title="Metaparameters",
    names=_METAPARAMETERS,
    member="head",
    field="self_tuned",
    note="What each head's loss is made of, after the sigmoid: a loss's coefficient is still "
    "to be multiplied with its outer value. Head 1 acts.",
)

# On two cores: IMPALA's values, by which the outer loss is IMPALA's. What they leave to IMPALA's
# own defaults comes first: the paper's are for other batches.
_AS_IMPALA: dict[str, Any] = dict(discount=0.99, max_gradient_norm=40.0)


def _entry(atari: Config, dmlab: Config, control: Config, control_image: Config) -> Entry:
    return Entry(
        atari,
        imported("agents.stac.builder:make"),
        dmlab=dmlab,
        control=control,
        control_image=control_image,
        of_env=impala.horizon,
        local={kind: _AS_IMPALA | dict(values) for kind, values in impala.LOCAL.items()},
        shared=impala.SHARED,
        all_dmlab_actions=False,
        columns=_COLUMNS,
        groups=(_GROUP,),
        rivals={"impala": "ours:impala"},
        networks=0,
        single_task="its metaparameters are tuned to one task, and several would share them",
    )


ENTRIES = {
    "stac": _entry(config.ATARI, config.DMLAB, config.CONTROL, config.CONTROL_IMAGE),
    "stacx": _entry(
        config.STACX_ATARI, config.STACX_DMLAB, config.STACX_CONTROL, config.STACX_CONTROL_IMAGE
    ),
}
