"""What the columns of IMPALA's log mean."""

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
