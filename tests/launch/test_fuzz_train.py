"""Anything typed after launch.train is a run that can be, or is refused in a sentence."""

import contextlib
import dataclasses
import io
import pathlib
import sys
import types
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from absl import flags
from absl.testing import flagsaver
from hypothesis import given
from hypothesis import strategies as st

from agents import fields
from launch import command_line, train
from run_folder import building, catalogue, resuming, settings
from run_folder.settings import Settings
from tests import fuzzing
from tests.fuzzing import TEXTS

_RUNS = ("r2d2", "impala", "popart", "stacx", "r2d2,impala", "popart,r2d2_plus")
_ENVS = ("catch", "catch,catch:large_rewards", "memory:recall", "atari:pong")
_FLAGS = (*train._SETTINGS, "annealing_frames", "resume_step", "resume_without_replay", "job")
_FIELDS = [
    f"{name}.{field}"
    for name, entry in catalogue.AGENTS.items()
    for field in fields.declared(type(entry.config))
]


def _arguments(agent: str) -> st.SearchStrategy[list[str]]:
    """A few arguments, more of them about these agents than about others."""
    own = [name for name in _FIELDS if name.partition(".")[0] in agent.split(",")]
    flag = st.sampled_from(_FLAGS) | st.sampled_from(own)
    odd = st.sampled_from(_FIELDS) | st.builds("{}.{}".format, TEXTS, TEXTS)
    argument = st.one_of(
        st.builds("--{}={}".format, flag, TEXTS),
        st.builds("--{}={}".format, flag, TEXTS),
        st.builds("--{}={}".format, flag, st.integers(0, 50)),
        st.builds("--{}={}".format, odd, TEXTS),
        st.builds("{}{}".format, st.sampled_from(["--no", "-", "--"]), flag | TEXTS),
        TEXTS,
    )
    return st.lists(argument, min_size=1, max_size=3)


_TYPED = st.sampled_from(_RUNS).flatmap(lambda run: st.tuples(st.just(run), _arguments(run)))


class _Refused(Exception):
    """The message of a command that ends with exit code 2."""


def _started(argv: Sequence[str]) -> Settings:
    """The run that `launch.train` would start; nothing is made of it, so that this takes no time.

    Raises:
      _Refused: it ends with a sentence.
    """
    started: list[Settings] = []

    def start(asked: Any, job: str | None, find: Any) -> int:
        started.append(asked if isinstance(asked, Settings) else resuming.resumed(*asked))
        return 0

    def resumption(*asked: Any) -> Any:
        return asked[:2]

    command, said = ["command", *argv], io.StringIO()
    starting: Any = types.SimpleNamespace(start=start, Resumption=resumption)
    with (
        flagsaver.flagsaver(),
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(sys.modules, {"launch.starting": starting}),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(said),
    ):
        flags.FLAGS.unparse_flags()
        code = _exit_code(command)
    if code == 2:
        raise _Refused(said.getvalue())
    assert (code, said.getvalue()) == (0, "")
    return started[0]


def _exit_code(command: list[str]) -> Any:
    try:
        train.main(command_line.parse_flags(command))
    except SystemExit as exit_:
        return exit_.code


def _try(argv: Sequence[str], recorded: pathlib.Path) -> None:
    """Fails unless these arguments are a run that can be, or are refused and quoted."""
    try:
        run = _started(argv)
    except _Refused as error:
        said = str(error)
        fuzzing.check_sentence(said)
        parts = [part for arg in argv for part in (arg, *arg.lstrip("-").partition("=")[::2])]
        assert any(fuzzing.quotes(said, part) for part in parts), said
        return
    fuzzing.check_usable(run)
    assert list(building.make_agents(run)) == run.agent.split(",")
    assert sum(len(crew.actors) for crew in run.crews()) == run.num_actors
    recorded.write_text(run.to_json())
    assert settings.load(recorded.parent) == dataclasses.replace(run, run_dir=str(recorded.parent))


@given(typed=_TYPED, env=st.sampled_from(_ENVS))
def test_what_is_typed_is_a_run_or_is_refused(
    typed: tuple[str, list[str]], env: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent, arguments = typed
    argv = [f"--agent={agent}", f"--env={env}", "--run_dir=new", *arguments]
    _try(argv, tmp_path / "config.json")


@given(typed=_TYPED)
def test_what_is_typed_beside_resume_goes_on_or_is_refused(
    typed: tuple[str, list[str]], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent, arguments = typed
    (tmp_path / "old").mkdir(exist_ok=True)
    run = _started([f"--agent={agent}", "--env=catch", "--run_dir=new"])
    (tmp_path / "old" / "config.json").write_text(run.to_json())
    _try(["--run_dir=old", "--resume", *arguments], tmp_path / "config.json")
