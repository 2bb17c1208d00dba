"""An environment's mask of legal actions: where it is shown, and how agents see it.

Two conventions of the field are known: a part `action_mask` of the observation, as in PettingZoo's
games and RLlib's, and `info["action_mask"]`, as in gymnasium's Taxi, which `MaskFromInfo` puts into
the observation. Action a, counted from 0, is legal where entry a is 1.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from environments.copies import conversion
from environments.copies.leaves import Leaf
from environments.copies.vector import ACTION_MASK, in_a_line

_ALONE = "observation"  # the name of what is shown beside a mask, if it is one array


class MaskFromInfo(gymnasium.Wrapper):
    """An environment whose `info` has a mask, as one whose observation has it.

    That of an episode's last observation may be missing: no action is taken there.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        acted = conversion.acted(env.action_space).space
        count = (
            int(acted.n) if isinstance(acted, spaces.Discrete) else 1
        )  # which `observed` refuses
        self._any = np.ones(count, np.int8)
        self.observation_space = spaces.Dict(
            {**self._parts(env.observation_space), ACTION_MASK: spaces.MultiBinary(count)}
        )

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**how)
        return {**self._parts(observation), **_masks(info)}, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        last = {ACTION_MASK: self._any} if terminated or truncated else {}
        seen = {**self._parts(observation), **last, **_masks(info)}
        return seen, reward, terminated, truncated, info

    def _parts(self, whole: Any) -> dict[str, Any]:
        """The parts of an observation, or of its space."""
        is_dict = isinstance(self.env.observation_space, spaces.Dict)
        return dict(whole.items()) if is_dict else {_ALONE: whole}


def observed(
    space: spaces.Dict, actions: spaces.Space | None, *, checked: bool
) -> conversion.Observed:
    """As `conversion.observed`, of an environment that shows a mask.

    The mask becomes uint8 [A], zeros and ones. All else is as it would be without, and called
    `observation` if it is one array.
    """
    mask = space[ACTION_MASK]
    count = mask.shape if actions is None else (_count(conversion.acted(actions).space),)
    if not isinstance(mask, spaces.Box | spaces.MultiBinary) or mask.shape != count:
        raise ValueError(
            f"must have a number for each of its actions, {list(count or ())}, as {ACTION_MASK!r}, "
            f"got {in_a_line(mask)}."
        )
    rest = {name: part for name, part in space.items() if name != ACTION_MASK}
    seen = conversion.observed(spaces.Dict(rest), checked=checked)
    is_alone = isinstance(seen.space, spaces.Box)
    parts = {_ALONE: seen.space} if isinstance(seen.space, spaces.Box) else seen.space.spaces
    leaf = Leaf((ACTION_MASK,), mask, is_text=False, is_checked=checked)

    def convert(observation: Any) -> dict[str, np.ndarray]:
        allowed, shown = np.asarray(leaf.of(observation)), seen.convert(observation)
        if ((allowed != 0) & (allowed != 1)).any():
            raise ValueError(f"{ACTION_MASK!r} must be zeros and ones, got {in_a_line(allowed)}")
        own = {ACTION_MASK: allowed.astype(np.uint8)}
        return own | ({_ALONE: shown} if is_alone else shown)

    own = spaces.Box(0, 1, mask.shape, np.uint8)
    return conversion.Observed(spaces.Dict({ACTION_MASK: own, **parts}), convert)


def check_any(observation: Mapping[str, np.ndarray], acts: np.ndarray | bool = True) -> None:
    """Accepts observations `[...]` as agents see them.

    Raises:
      ValueError: a clause; one that is to be acted on, `acts` `[...]`, shows no legal action.
    """
    mask = observation[ACTION_MASK]
    if (~mask.any(axis=-1) & acts).any():
        raise ValueError(
            f"{ACTION_MASK!r} must show a legal action where the episode goes on, got zeros for "
            f"all {mask.shape[-1]}"
        )


def sample(space: spaces.Discrete, observation: Mapping[str, np.ndarray]) -> Any:
    """A legal action at an observation as agents see it; ValueError as `check_any`."""
    check_any(observation)
    return space.sample(observation[ACTION_MASK].astype(np.int8))


def _masks(info: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {ACTION_MASK: np.asarray(info[ACTION_MASK])} if ACTION_MASK in info else {}


def _count(actions: spaces.Space) -> int:
    if not isinstance(actions, spaces.Discrete):
        raise ValueError(
            f"must take one discrete action where {ACTION_MASK!r} says which are legal, got "
            f"{in_a_line(actions)}."
        )
    return int(actions.n)
