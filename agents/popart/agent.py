"""PopArt-IMPALA as a library (Hessel et al., AAAI 2019)."""

from acme import specs

from agents.popart.builder import make
from agents.popart.config import ATARI, DMLAB, MULTIHEAD_ATARI, MULTIHEAD_DMLAB, Config
from agents.single_process import SingleProcessAgent

__all__ = ["ATARI", "DMLAB", "MULTIHEAD_ATARI", "MULTIHEAD_DMLAB", "Config", "PopArtIMPALA", "make"]


class PopArtIMPALA(SingleProcessAgent):
    """PopArt-IMPALA in one process: its environment is task 0.

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
