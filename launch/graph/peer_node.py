"""What runs inside the process of an agent's further learners, those of rank 1 and more."""

import os
import threading
from collections.abc import Sequence
from typing import Any

import reverb

from launch.graph import heartbeats, meetings, process
from launch.graph.actor_node import REPORT_SECONDS
from launch.graph.learning import make_learning
from run_folder.settings import Settings


class PeerNode:
    """Learns with the learner of rank 0, from a part of each batch. It neither reports nor saves.

    It begins with the parameters of rank 0, and ends when that one does.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        rank: int,
        replays: Sequence[reverb.Client],
        coordinator: Any,
    ) -> None:
        process.enter(settings.run_dir, f"{name}'s learner of rank {rank}")
        heartbeats.stay_busy()  # it waits for the others, which may save; who stands still is seen
        learners = meetings.join(coordinator, name, rank, settings.learners_per_agent)
        self._learning = make_learning(settings, name, replays, learners)
        self._over = threading.Event()

    def run(self) -> None:
        """Learns until all learners end together."""
        stop = process.stop_event()
        threading.Thread(target=self._end_when_torn_down, args=(stop,), daemon=True).start()
        learning = self._learning
        try:
            learning.warm_up()
            while not learning.learner.has_ended:
                learning.try_step(timeout=REPORT_SECONDS)
            learning.priorities.close()
            self._over.set()
            while not process.wait_for_stop(0):  # it blocks no one meanwhile
                learning.learner.skip(timeout=REPORT_SECONDS)
        except Exception:
            # After a crash elsewhere replay, or a learner, may end before this node hears of it.
            if not process.wait_for_stop(process.GRACE_SECONDS):
                raise

    def _end_when_torn_down(self, stop: threading.Event) -> None:
        """Ends this process after a crash elsewhere: `run` may wait for a peer that is gone."""
        stop.wait()
        if not self._over.wait(process.GRACE_SECONDS):
            os._exit(process.TERMINATED)
