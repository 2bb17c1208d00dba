"""When blocks begin and end, and what they hold beside their own rows."""

import numpy as np

from replay.blocks import BlockBuffer
from replay.layout import BlockLayout
from tests.replay import streams


def test_an_episode_begins_a_block_unless_another_just_did() -> None:
    """Long episodes' items then fill their blocks; short ones do not make a block each."""
    types = streams.step_types([5, 11, 1, 1, 1, 1, 20], 46)
    rows = streams.stream(np.random.default_rng(13), np.asarray([types], np.uint8))
    buffer = BlockBuffer(BlockLayout(4, 1, by_episode=True), 1)
    found = []
    for t, row in enumerate(rows):
        for n in buffer.write(row.step):
            start, block = buffer.block(n)
            found.append((start, t))
            before = 0 if start in (0, 6, 18, 22, 26) else types[start - 1]
            own = types[start : t + 1]  # and the row after them, if an episode did not end before
            assert block.records[:, 0].tolist() == [before, *own, *[0] * (5 - len(own))]
    first, second = [(0, 4), (4, 5)], [(6, 10), (10, 14), (14, 17)]
    of_two_steps = [(18, 21), (22, 25)]  # two episodes in each
    assert found == [*first, *second, *of_two_steps, (26, 30), (30, 34), (34, 38), (38, 42)]
