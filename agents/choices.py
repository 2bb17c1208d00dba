"""What hyperparameters of several agents choose between, by names that need no TensorFlow."""

from typing import Literal, get_args

from agents.networks.named import TORSO_EXAMPLE
from agents.requirements import Requirement
from environments.import_path import is_import_path

Precision = Literal["float32", "bfloat16"]
RewardTransform = Literal["none", "clip", "asymmetric"]
TorsoKind = Literal["dqn", "shallow", "resnet", "strided", "mlp"]

TORSO = Requirement(
    f"one of {', '.join(get_args(TorsoKind))}, or your own as {TORSO_EXAMPLE}",
    lambda name: name in get_args(TorsoKind) or is_import_path(name),
)
