"""Recurrent SAC as a library (Haarnoja et al. 2018; Kapturowski et al. 2019)."""

from acme import specs

from agents.rsac.builder import make
from agents.rsac.config import CONTROL, CONTROL_IMAGE, Config
from agents.single_process import SingleProcessAgent

__all__ = ["CONTROL", "CONTROL_IMAGE", "RSAC", "Config", "make"]


class RSAC(SingleProcessAgent):
    """Recurrent SAC in one process. The default config is for vectors and a large machine."""

    def __init__(
        self,
        environment_spec: specs.EnvironmentSpec,
        config: Config = CONTROL,
        *,
        num_environments: int = 1,
        seed: int = 0,
    ) -> None:
        how = dict(num_environments=num_environments, seed=seed)
        super().__init__(make(config), environment_spec, **how)
