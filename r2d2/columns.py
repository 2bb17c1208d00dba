"""What the columns of R2D2's log mean."""

COLUMNS = {
    "loss": "½ w δ² of the rescaled values, summed over an item's steps, the mean of the batch",
    "gradient_norm": "of the gradient before it is clipped",
    "mean_q": "Q of the actions taken, rescaled by h",
    "mean_target": "ŷ, the targets of those, rescaled by h",
    "mean_abs_td": "|δ|, between the two",
    "mean_priority": "p, by which an item is drawn again",
}
