"""Gives the members of a population their turns, and has them decide in between."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import recurrent_replay
from agents.requirements import LARGEST
from launch.local import processes
from launch.local.caller import REFUSED
from launch.members.view import View, sentence
from population import decisions, rule
from population.decisions import Decision, Member, State
from population.folder import PopulationFolder, name_of
from population.settings import Population
from run_folder import progress, run_lock, texts
from run_folder.settings import EVERY_AGENT, SettingsError

POLL_SECONDS = 0.5
MOST_FAILURES = 3  # turns of a member in a row
LOCKED_SECONDS = 60.0  # until runs whose population was killed have saved, and are gone
_LAST_LINES = 15


class Turn:
    """A member's run of `launch.train`, which ends in order when this process is gone.

    Raises:
      OSError: it cannot be started.
    """

    def __init__(self, folder: PopulationFolder, member: int, arguments: list[str]) -> None:
        self._run = folder.member(member)
        self._output = folder.output(member)
        self._output.parent.mkdir(exist_ok=True)
        with self._output.open("a") as output:
            self._begins = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, recurrent_replay.__file__, "train", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the population
                preexec_fn=processes.end_with_parent,
            )

    def ended(self) -> int | None:
        """The exit code; None while it lasts."""
        return self._process.poll()

    def stop(self) -> None:
        """Asks for its end in order, again and again if need be: a run that begins forgets it."""
        with contextlib.suppress(OSError):  # its folder may not be there yet
            self._run.stop.touch()

    def signal(self) -> None:
        """Asks for its end even before it has begun."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def progress(self) -> dict[str, Any] | None:
        """The newest counts of its coordinator; None before the first."""
        return progress.read(self._run.path)

    def said(self) -> str:
        """The last lines that it printed."""
        with contextlib.suppress(OSError), self._output.open("rb") as output:
            output.seek(self._begins)
            lines = output.read().decode(errors="replace").splitlines()
            return "\n".join(lines[-_LAST_LINES:])
        return ""


class Loop:
    """Trains members by turns, as many at a time as was asked for.

    The member that has played least comes next. A turn ends when the member is ready to decide, has
    reached its limit, or has played `turn_steps`.

    Args:
      population: its settings.
      folder: its folder.
      members: the members that are trained here; all of them, but on a cluster.
      shown: where they are shown.

    Raises:
      SettingsError: a file is damaged, or another process runs a member.
      OSError: the folder cannot be written.
    """

    def __init__(
        self, population: Population, folder: PopulationFolder, members: range, shown: View
    ) -> None:
        self._population = population
        self._folder = folder
        self._view = shown
        self._state = State(population, folder)
        self._stop = threading.Event()
        self._turns: dict[int, Turn] = {}
        self._members = {member: self._begin(member) for member in members}
        decisions.list_all(folder)  # a process killed right after a decision has not listed it

    def run(self) -> bool:
        """Trains until every member has reached its limit, or somebody asks for the end.

        Returns:
          Whether every member that should have gone on could.

        Raises:
          SettingsError: the settings of a member are refused.
          OSError: the folder cannot be written.
        """
        processes.hear_the_end(self._stop)
        try:
            while self._turns or not self._is_over():
                self._give_turns()
                self._look_after_turns()
                told = {member: turn.progress() for member, turn in self._turns.items()}
                self._view.show(self._population, self._members, told)
                time.sleep(POLL_SECONDS)
        finally:
            for each in self._turns.values():
                each.signal()
        return not any(member.left_out for member in self._members.values())

    def scores(self) -> dict[int, float]:
        """The score of every member that was trained here; NaN of one that has none."""
        return {number: member.score for number, member in self._members.items()}

    def has_finished(self) -> bool:
        """Tells whether every member that was trained here has reached a limit."""
        return all(map(self._has_finished, self._members.values()))

    def _begin(self, member: int) -> Member:
        """A member as it is found, once any run of it that outlived its population has ended."""
        deadline = time.monotonic() + LOCKED_SECONDS
        while run_lock.is_held(self._folder.member(member).path):
            if time.monotonic() > deadline:
                raise SettingsError(
                    f"{self._folder.member(member).path} is being run by another process."
                )
            with contextlib.suppress(OSError):  # its run may have no such folder yet
                self._folder.member(member).stop.touch()
            time.sleep(POLL_SECONDS)
        return self._state.begin(member)

    def _is_over(self) -> bool:
        return self._stop.is_set() or not any(map(self._may_go_on, self._members))

    def _may_go_on(self, member: int) -> bool:
        found = self._members[member]
        return not found.left_out and not self._has_finished(found)

    def _has_finished(self, member: Member) -> bool:
        saved = member.manifest
        return saved is not None and self._population.is_at_limit(
            saved.actor_steps, saved.learner_step
        )

    def _give_turns(self) -> None:
        waiting = [
            member
            for member in self._members
            if member not in self._turns and self._may_go_on(member)
        ]
        waiting.sort(key=lambda member: self._members[member].actor_steps)
        for member in waiting[: self._population.concurrent - len(self._turns)]:
            if not self._stop.is_set():
                self._turns[member] = self._start(member)

    def _start(self, member: int) -> Turn:
        population, found = self._population, self._members[member]
        until = min(found.actor_steps + population.turn_steps, LARGEST)
        limit = population.flags.get("max_actor_steps")
        flags = population.flags | dict(
            max_actor_steps=until if limit is None else min(until, limit)
        )
        run = self._folder.member(member)
        if run.config.exists():
            flags |= dict(run_dir=str(run.path), resume=True)
        else:
            flags |= population.own_flags(self._folder, member)
        given = {name: value for name, value in flags.items() if value is not None}
        typed = [f"--{name}={texts.typed(value)}" for name, value in given.items()]
        for agent, own in population.overrides_of(found.decision.new).items():
            dotted = f"{agent}." if agent != EVERY_AGENT else ""
            typed += [f"--{dotted}{name}={text}" for name, text in own.items()]
        return Turn(self._folder, member, typed)

    def _look_after_turns(self) -> None:
        for member, running in list(self._turns.items()):
            code = running.ended()
            if code is not None:
                del self._turns[member]
                self._after(member, code, running)
            elif self._stop.is_set():
                running.signal()
            elif (told := running.progress()) is not None:
                counts, newest = told["counts"], self._members[member].decision
                if self._is_ready(newest, counts["actor_steps"], counts["episodes"]):
                    running.stop()

    def _is_ready(self, newest: Decision, actor_steps: int, episodes: int) -> bool:
        """Tells whether a member with these counts since it began is to decide."""
        since = episodes - newest.episodes
        return not rule.until_decision(self._population, actor_steps, since)

    def _after(self, member: int, code: int, ended: Turn) -> None:
        """Follows up the end of a turn: by a decision, another try, or no more turns."""
        failures = self._members[member].failures
        found = self._members[member] = self._state.look(member)
        if code == REFUSED:
            raise SettingsError(f"Member {name_of(member)}: {ended.said()}")
        manifest = found.manifest
        if code == 0 or self._stop.is_set():
            if (
                manifest is not None
                and not self._has_finished(found)
                and self._is_ready(found.decision, manifest.actor_steps, manifest.episodes)
            ):
                self._decide(member)
            return
        found.failures = failures + 1
        self._view.tell(
            f"Member {name_of(member)} ended with code {code}, {found.failures} times in a row; "
            f"what it said is in {self._folder.output(member)}."
        )
        if found.failures < MOST_FAILURES:
            return
        if manifest is not None and self._population.evolves:
            decision = self._decide(member, has_failed=True)
            if decision is not None and decision.adopted is not None:
                return
        found = self._members[member]
        found.left_out = "it failed again and again"
        self._view.tell(f"Member {name_of(member)} has no more turns: {found.left_out}.")

    def _decide(self, member: int, *, has_failed: bool = False) -> Decision | None:
        try:
            decision = self._state.decide(member, has_failed=has_failed)
        except OSError as error:
            self._view.tell(f"Member {name_of(member)} could not decide: {error}")
            return None
        self._members[member] = self._state.look(member)
        self._view.tell(sentence(decision))
        return decision
