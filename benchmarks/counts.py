"""Flags that hold several numbers: --num_environments=1,16,64,256."""

from collections.abc import Sequence

from absl import flags

flags.disclaim_key_flags()  # they belong to the commands that define them


class _Parser(flags.ArgumentParser):
    syntactic_help = "whole numbers of at least 1 with commas between them"

    def parse(self, argument: str | Sequence[int]) -> tuple[int, ...]:
        """The numbers of a text; those of a default are numbers already."""
        parts = argument.split(",") if isinstance(argument, str) else argument
        numbers = tuple(int(part) for part in parts)
        if min(numbers) < 1:
            raise ValueError(f"Expected {self.syntactic_help}.")
        return numbers

    def flag_type(self) -> str:
        """As --help shows it."""
        return "counts"


def define(name: str, default: Sequence[int], text: str) -> flags.FlagHolder[tuple[int, ...]]:
    """Defines a flag of the module that calls this."""
    holder: flags.FlagHolder[tuple[int, ...]] = flags.DEFINE(_Parser(), name, tuple(default), text)
    return holder
