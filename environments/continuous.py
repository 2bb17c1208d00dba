"""Which environments are acted in by vectors of numbers."""

from environments import conversion, gym, suites

# Known by their names, so that no engine has to be there to ask.
_CONTROL = ("control", "control-pixels", "rwrl")


def is_continuous(name: str) -> bool:
    """Whether actions are vectors: by the name, or else by what can be made here.

    Args:
      name: of an environment, or of a suite, whose first task tells; not checked.
    """
    first = suites.tasks(name)[0]
    if first.partition(":")[0] in _CONTROL:
        return True
    try:
        suites.check_names(first)
        return suites.made_singly(first) and gym.is_continuous(first)
    except ValueError:
        return False


def shows_pixels(name: str) -> bool:
    """Whether an environment that is continuous shows images.

    Args:
      name: as for `is_continuous`.
    """
    first = suites.tasks(name)[0]
    word = first.partition(":")[0]
    if word in _CONTROL:
        return word == "control-pixels"
    return bool(conversion.images(gym.describe(first).observations))
