"""STAC and STACX as a library (Zahavy et al., NeurIPS 2020)."""

from acme import specs

from agents.single_process import SingleProcessAgent
from agents.stac.builder import make
from agents.stac.config import ATARI, Config

__all__ = ["ATARI", "STAC", "Config", "make"]


class STAC(SingleProcessAgent):
    """STAC in one process; STACX where the config has several heads, as `STACX_ATARI` does.

    The default config is the paper's for Atari, which wants an image.
    """

    def __init__(
        self,
        environment_spec: specs.EnvironmentSpec,
        config: Config = ATARI,
        *,
        num_environments: int = 1,
        seed: int = 0,
    ) -> None:
        how = dict(num_environments=num_environments, seed=seed)
        super().__init__(make(config), environment_spec, **how)
