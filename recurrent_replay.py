"""The command `recurrent-replay`, the same from Python, and what an environment must have for it.

    recurrent-replay train --agent=r2d2 --env=catch --run_dir=runs/catch

does what `python -m launch.train` does with the same flags; alone it lists its sub-commands. From
Python `train` does the same, and `open` gives a run that has begun.

This module imports the standard library only: it is to speak where nothing else is installed.
"""

import ast
import contextlib
import difflib
import errno
import functools
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import re
import runpy
import shlex
import shutil
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launch.handle import Run

NAME = "recurrent-replay"
PYTHONS = ("CPython 3.11", "CPython 3.10")
LOCK, GPU_LOCK = "requirements.lock", "requirements-gpu.lock"
LAUNCHPAD_LOCK = "requirements-launchpad.lock"
# Rooms that others import, each only those before it. Their names are no rarer than anybody's.
ROOMS = (
    *("courier", "tensor_ops", "environments", "replay", "agents"),
    *("r2d2", "run_folder", "population", "analysis"),
)
COMMANDS = ("launch", "benchmarks")  # rooms above them
# What moves together or not at all, since compiled parts load beside one TensorFlow each.
TOGETHER = ("dm-acme", "dm-launchpad-nightly", "dm-reverb", "dm-sonnet", "numpy")
TENSORFLOWS = ("tensorflow-cpu", "tensorflow")  # one of them
_OTHER_LAUNCHPAD = "dm-launchpad"  # that Acme's metadata asks for, in the same folder as ours
_HERE = pathlib.Path(__file__).parent
_SHARE = pathlib.Path("share", NAME)  # where a wheel puts the locks, below an environment's data


class InstallationError(ImportError):
    """The installed packages cannot run this; the message says what to do."""


def file(name: str) -> pathlib.Path:
    """A lock of the project's root, wherever the installation has it.

    Raises:
      FileNotFoundError: it has none, as a host of a cluster, which was given the sources alone.
    """
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    shares = [pathlib.Path(sysconfig.get_path("data", scheme)) / _SHARE for scheme in schemes]
    places = [_HERE, *shares, _HERE / _SHARE]  # the last of `pip install --target`
    for place in places:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def addition(group: str) -> str:
    """The line that installs what `requirements-<group>.lock` adds."""
    if (_HERE / "Makefile").is_file() and pathlib.Path(sys.prefix).parent == _HERE:
        return f"make setup-{group}"
    lock = f"requirements-{group}.lock"
    with contextlib.suppress(FileNotFoundError):
        lock = str(file(lock))
    return f"{shlex.quote(sys.executable)} -m pip install --no-deps -r {shlex.quote(lock)}"


def check() -> None:
    """Sees to it that the modules and packages are those that this was written for.

    TensorFlow, which rooms import after this, then says nothing, as its errors are Python's too,
    computes by oneDNN, and keeps freed memory for the next result, if nobody said otherwise.
    oneDNN's updates take a tenth to a third less time than Eigen's on a processor with AVX2, where
    TensorFlow would take the latter. Memory that is not kept costs up to a third of an update: the
    kernel clears the pages of whatever is larger than 32 MB.

    Raises:
      InstallationError: they are not. A module that `python -m` is about to run ends instead, with
        the sentence and exit code 2.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    if not (why := _why_not() or _too_late()):
        return
    if sys.argv[0] == "-m":  # while Python looks for the module that it was told to run
        print(why, file=sys.stderr)
        sys.exit(2)
    raise InstallationError(why)


@functools.cache
def _why_not() -> str:
    """Says what is wrong with the installation, and what rights it; empty where nothing is."""
    return _clash() or _other_python() or _unfit()


def _too_late() -> str:
    """Says so where `absl.app.run` has begun before TensorFlow is imported.

    TensorFlow would look for accelerators while it is imported, and make a context in which
    functions are traced as in TensorFlow 1: `tensor == 0` is False there.
    """
    app = sys.modules.get("absl.app")
    if app is None or "tensorflow" in sys.modules:
        return ""
    begun: list[bool] = []
    app.call_after_init(lambda: begun.append(True))  # at once, if it has
    if not begun:
        return ""
    return (
        "TensorFlow must be imported before absl.app.run begins: import it where your script does, "
        f"or begin by `{command('train')}` or launch.command_line.run(main, {{}})."
    )


def _clash() -> str:
    """Names a folder of somebody's that Python finds in the place of one of ours."""
    for room in ROOMS:
        own = _HERE / room
        spec = importlib.util.find_spec(room) if own.is_dir() else None
        found = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
        if not found:
            continue
        other = pathlib.Path(found)
        other = other.parent if other.name == "__init__.py" else other
        if room == "courier" and (why := _launchpads(own, other)):
            return why
        if not other.exists() or not own.samefile(other):
            return (
                f"Two packages are named {room!r}: {NAME}'s, {own}, and {other}, which Python "
                "finds first. Rename the second one, or start where it is not on PYTHONPATH or in "
                "the current folder."
            )
    return ""


def _launchpads(own: pathlib.Path, found: pathlib.Path) -> str:
    """Names Launchpad's Courier in the place of ours: it loads beside no TensorFlow of today."""
    init = found / "__init__.py"
    if not init.is_file() or "cdll" not in init.read_text():
        return ""
    if found.samefile(own):
        return f"Launchpad was installed over {NAME}'s {own}: install {NAME} once more, after it."
    return f"Launchpad's own {found} is found before {NAME}'s {own}: remove the former."


def _other_python() -> str:
    """Says that there is no Reverb for this Python, and which Python there is instead."""
    running = f"{platform.python_implementation()} {platform.python_version()}"
    if running.startswith(tuple(f"{python}." for python in PYTHONS)):
        return ""
    environment = _HERE / ".venv"
    if (environment / ".installed").exists():  # by make
        instead = f"{_typed(environment / 'bin' / 'python')} is one, and ready."
    elif (_HERE / "Makefile").is_file():
        instead = f"`make setup` in {_HERE} finds one and installs what is needed."
    else:
        instead = "Install it with one: docs/installing.md."
    return (
        f"{NAME} cannot run with {sys.executable}, which is {running}: it takes "
        f"{' or '.join(PYTHONS)}, as Reverb has no build for another. {instead}"
    )


def _unfit() -> str:
    """Names packages that are missing, or have another version than the lock."""
    try:
        lock, launchpads = file(LOCK), file(LAUNCHPAD_LOCK)
    except FileNotFoundError:
        return ""
    text = lock.read_text() + launchpads.read_text()
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    wrong = [name for name in _needed() if not _version(name)]
    if not any(map(_version, TENSORFLOWS)):
        wrong.insert(0, "TensorFlow")
    said = [f"{_listed(wrong)} {'is' if len(wrong) == 1 else 'are'} missing"] if wrong else []
    for name in (*TOGETHER, *TENSORFLOWS):
        pinned = pins.get(name, pins[TENSORFLOWS[0]])
        if (version := _version(name)) and version != pinned:
            said.append(f"{name} is {version} and not {pinned}")
    two = bool(_version(_OTHER_LAUNCHPAD))
    if two:
        said.append(f"{_OTHER_LAUNCHPAD} and dm-launchpad-nightly are two Launchpads in one folder")
    if not said:
        return ""
    typed = (sys.executable, str(lock), sysconfig.get_path("purelib"), str(launchpads))
    python, first, place, second = map(shlex.quote, typed)
    pip = f"{python} -m pip"
    remove = f"{pip} uninstall --yes {_OTHER_LAUNCHPAD} dm-launchpad-nightly && " * two
    return (
        f"{NAME} cannot run with {sys.executable}: {'; '.join(said)}. What it needs is installed "
        f"by\n  {remove}{pip} install --no-deps -r {first}\n"
        f"  {pip} install --no-deps --upgrade --target {place} "
        f"--python-version 3.10 --only-binary :all: -r {second}\n"
        f"and for an NVIDIA GPU with {GPU_LOCK} instead of {LOCK}."
    )


def _needed() -> list[str]:
    """The distributions that are needed, as far as the installation's metadata tells."""
    try:
        asked = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:  # a work tree
        asked = []
    names = (re.match(r"[\w.-]+", text) for text in asked if "extra ==" not in text)
    return list(dict.fromkeys([*TOGETHER, *(name[0] for name in names if name)]))


def _version(name: str) -> str:
    """The version of an installed distribution; empty where there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def version() -> str:
    """The project's version, by its sources or else its installation; empty where neither tells."""
    with contextlib.suppress(OSError):
        text = (_HERE / "pyproject.toml").read_text()
        return "".join(re.findall('^version = "(.+)"', text, re.MULTILINE))
    return _version(NAME)


def commands() -> dict[str, str]:
    """Each sub-command with the first sentence of what it does. Imports none of them."""
    found = {}
    for path in sorted((_HERE / "launch").glob("*.py")):
        text = path.read_text()
        if '\nif __name__ == "__main__":' in text:
            line = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
            found[path.stem] = re.split(": python -m|;", line)[0].removesuffix(".")
    return found


def command(name: str) -> str:
    """A sub-command as one types it who typed the one that runs, for the interpreter that runs.

    `python -m` looks into the folder that one stands in first, so where the command was needed for
    that it is needed again.
    """
    program = pathlib.Path(*sys.orig_argv[1:2])
    if program.name == NAME:
        return f"{_typed(program)} {name}"
    python = _typed(pathlib.Path(sys.executable))
    return (
        f"{python} {_typed(program)} {name}"
        if program.stem == __name__
        else (f"{python} -m launch.{name}")
    )


def _typed(program: pathlib.Path) -> str:
    """A program as briefly as it can be typed: by its name where that finds it, else by its path.

    A path below the folder that one stands in is relative to it.
    """
    if shutil.which(program.name) == str(program):
        return program.name
    with contextlib.suppress(ValueError, OSError):  # elsewhere; in a folder that is gone
        program = program.relative_to(os.getcwd())
    return shlex.quote(str(program))


def train(
    agent: Any = None,
    env: Any = None,
    run_dir: "str | os.PathLike[str] | None" = None,
    *,
    wait: bool = True,
    **flags: Any,
) -> "Run":
    """Trains an agent, as `python -m launch.train` does with the same flags, in its own processes.

        run = train("r2d2", "atari:pong", "runs/pong", seed=1, r2d2={"batch_size": 32})

    Args:
      agent: a name, or an entry at the top of a module; a list of several.
      env: the same of environments and of functions that make one.
      run_dir: a new folder.
      wait: whether to return once the run has ended, while it shows how it goes; Ctrl-C ends it in
        order. Else it goes on until it has ended, `Run.stop`, or the end of this process.
      **flags: any other flag by its name; an agent's name with a dictionary of its fields.

    Raises:
      SettingsError: a ValueError; the run cannot be. With `wait=False`, `Run.wait` raises it.
      RunCrashedError: a RuntimeError; the run has ended by a crash.
    """
    from launch import handle

    return handle.train(dict(agent=agent, env=env, run_dir=run_dir, **flags), wait=wait)


def open(run_dir: "str | os.PathLike[str]", *, trust: bool = False) -> "Run":
    """A run in a folder, whoever has started it.

    Args:
      run_dir: the folder.
      trust: whether code that the run names is imported where somebody else may have named it.

    Raises:
      SettingsError: a ValueError; there is no run, or it names code and is another user's.
    """
    from launch import handle

    return handle.open_run(run_dir, trust=trust)


def usage() -> str:
    """The page that lists the sub-commands."""
    known = commands()
    width = max(map(len, known)) + 2
    lines = [f"  {name.ljust(width)}{what}" for name, what in known.items()]
    end = f"{NAME} <command> --help lists its flags. README.md has examples."
    return "\n".join([f"{NAME} <command> [flags]", "", *lines, "", end])


def main() -> None:
    """Runs the sub-command that was typed, as `python -m launch.<command>` would."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help", "-help", "help"):
        print(usage())
        return
    if name in ("--version", "-version", "version"):
        print(NAME, version())
        return
    known = commands()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        print(f"There is no command {name!r}: {advice}", file=sys.stderr)
        sys.exit(2)
    if why := _why_not():
        print(why, file=sys.stderr)
        sys.exit(2)
    # Tasks and agents of one's own are found where one stands; their names give way to ours.
    sys.path.append(os.getcwd())
    del sys.argv[1]
    runpy.run_module(f"launch.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
