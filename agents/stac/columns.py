"""What the columns of STAC's log mean."""

from agents.entry import Group
from agents.impala import columns as impala

METAPARAMETERS = {
    "gamma": "γ, the discount",
    "lambda": "λ, of the traces",
    "g_v": "of the baseline loss; times `baseline_cost`",
    "g_p": "of the policy gradient; times `policy_gradient_cost`",
    "g_e": "of the entropy; times `entropy_cost`",
    "alpha": "α: 1 truncates importance weights as V-trace does, 0 leaves them",
    "alpha_rho": "α of ρ alone",
    "alpha_c": "α of the traces alone",
}

COLUMNS = {
    **{name: meaning for name, meaning in impala.COLUMNS.items() if name != "pixel_control_loss"},
    "loss": "the inner loss, summed over a batch, the mean of the heads; below: the acting head's",
    "outer_loss": "what the metaparameters minimise: the fixed loss after the step, and its KL",
    "kl": "of the policy after the step from the one before, summed over a batch, before its cost",
    "metagradient_norm": "of the outer loss by all metaparameters, before their sigmoid",
    **{f"{name}_metagradient": f"the part of {name}, of all heads" for name in METAPARAMETERS},
}

GROUP = Group(
    title="Metaparameters",
    names=METAPARAMETERS,
    member="head",
    field="self_tuned",
    note="What each head's loss is made of, after the sigmoid: a loss's coefficient is still "
    "to be multiplied with its outer value. Head 1 acts.",
)
