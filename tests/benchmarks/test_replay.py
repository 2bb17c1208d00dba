"""benchmarks.replay on tiny settings."""

import pytest

from tests.benchmarks.commands import SHORT, report, tiny
from tests.commands import Commands


@pytest.mark.slow
def test_every_number_of_servers_has_its_figures(commands: Commands) -> None:
    flags = ("--num_shards=1,2", "--num_items=60")
    contents = report(commands, "replay", *tiny("r2d2"), *SHORT, *flags)
    units = {name: found["unit"] for name, found in contents["figures"].items()}
    assert units == {
        f"{name}, {count}": unit
        for count in (1, 2)
        for name, unit in {
            "memory of 100000 items": "GB",
            "inserted": "items/s",
            "sampled": "items/s",
            "batches": "items/s",
        }.items()
    }


@pytest.mark.parametrize(
    ("agent", "flags", "said"),
    [
        ("impala", [], "A prioritized table is needed, but --agent=impala reads a queue."),
        ("r2d2", ["--num_shards=1,3"], "must give a multiple of 3; got a batch size of 2."),
    ],
)
def test_what_cannot_be_sampled_is_refused(
    commands: Commands, agent: str, flags: list[str], said: str
) -> None:
    finished = commands.run("benchmarks.replay", *tiny(agent), *flags)
    assert (finished.code, finished.out) == (2, "")
    assert said in finished.err
