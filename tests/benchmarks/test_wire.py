"""benchmarks.wire: what is counted, and the command on tiny settings."""

import pytest

from benchmarks import costs
from tests.benchmarks.commands import report, tiny
from tests.commands import Commands

pytestmark = pytest.mark.repository


def test_a_cost_is_the_growth_of_each_counter_over_the_number_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = {"bytes": 100.0, "server": 2.0, "client": 1.0}
    monkeypatch.setattr(costs, "_bytes", lambda: counters["bytes"])

    def work() -> int:
        counters.update(bytes=180.0, server=2.4, client=1.8)
        return 8

    found = costs.cost(work, lambda: counters["server"], lambda: counters["client"])
    assert found == pytest.approx((10.0, 0.05, 0.1))


@pytest.mark.slow
def test_everything_that_is_sent_has_its_figures(commands: Commands) -> None:
    contents = report(commands, "wire", *tiny("r2d2"), "--num_items=60")
    figures = contents["figures"]
    sent = ("item written", "item sampled", "priority", "parameters fetched")
    units = {"on the wire": "bytes", "server": "ms of a core", "client": "ms of a core"}
    assert {name: found["unit"] for name, found in figures.items()} == {
        "parameters": "bytes",
        **{f"{what}, {part}": unit for what in sent for part, unit in units.items()},
    }
    parameters = figures["parameters"]["value"]
    assert figures["parameters fetched, on the wire"]["value"] >= parameters
    header_and_state = 7 * 8 + 2 * 4 * contents["settings"]["config"]["lstm_size"]
    assert figures["item written, on the wire"]["value"] > header_and_state
