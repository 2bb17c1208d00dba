"""benchmarks.replay on tiny settings."""

import pytest

from tests.benchmarks.commands import SHORT, report, run, tiny


@pytest.mark.slow
def test_every_number_of_servers_has_its_figures() -> None:
    flags = ("--num_shards=1,2", "--num_items=60")
    contents = report("replay", *tiny("r2d2"), *SHORT, *flags)
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


def test_a_queue_is_refused() -> None:
    finished = run("replay", *tiny("impala"))
    assert finished.returncode == 2
    assert "A prioritized table is needed, but --agent=impala reads a queue." in finished.stderr
