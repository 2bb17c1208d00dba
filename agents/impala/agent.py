"""IMPALA as a library (Espeholt et al., ICML 2018)."""

from acme import specs

from agents.impala.builder import make
from agents.impala.config import ATARI, CONTROL, CONTROL_IMAGE, DMLAB, Config
from agents.single_process import SingleProcessAgent

__all__ = ["ATARI", "CONTROL", "CONTROL_IMAGE", "DMLAB", "IMPALA", "Config", "make"]


class IMPALA(SingleProcessAgent):
    """IMPALA in one process. The default config is the paper's for Atari, which wants an image."""

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
