"""A measurement's table on a terminal of 80 columns."""

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from analysis.diagnosis import discrepancy, memory, output

_TASKS = ("memory:recall", "dmlab:rooms_select_nonmatching_object")
_ROWS: dict[str, Sequence[Any]] = {
    "discrepancy": [
        discrepancy.Row(task, 123_456, "stored", 40, 0.00012345678, -123.456, -0.0001, 9e9, 10**6)
        for task in _TASKS
        for _ in range(2)
    ],
    "memory": [
        memory.Row(task, 10_000, -1234.5678, -9999.99, 0.00012345, 0.77777, 1e-9, 500)
        for task in _TASKS
    ],
}


@pytest.mark.parametrize("name", _ROWS)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_row_is_a_line_of_80_columns_and_a_task_a_table(name: str, terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, no_color=True)
    output.show(console, "Measured", _ROWS[name])
    assert isinstance(console.file, io.StringIO)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    for task in _TASKS:
        assert any(f"Measured, {task}" in line for line in lines)
    whole = "0.0001235" if name == "discrepancy" else "10,000"
    assert sum(whole in line for line in lines) == len(_ROWS[name])
