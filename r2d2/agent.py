"""R2D2 as a library (Kapturowski et al., ICLR 2019)."""

from acme import specs

from agents.single_process import SingleProcessAgent
from r2d2.builder import make
from r2d2.config import DMLAB_VARIANTS, VARIANTS, Config

__all__ = ["DMLAB_VARIANTS", "R2D2", "VARIANTS", "Config", "make"]


class R2D2(SingleProcessAgent):
    """R2D2 in one process. The default config is the paper's, for images and a large machine."""

    def __init__(
        self,
        environment_spec: specs.EnvironmentSpec,
        config: Config = VARIANTS["r2d2"],
        *,
        num_environments: int = 1,
        seed: int = 0,
    ) -> None:
        how = dict(num_environments=num_environments, seed=seed)
        super().__init__(make(config), environment_spec, **how)
