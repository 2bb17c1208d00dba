"""The help of commands: a screen of the flags that one reads, in groups, or an agent's fields."""

import itertools
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from absl import flags

from agents import fields
from environments import suites
from launch import command_line
from run_folder import catalogue, settings, texts

_WIDTH, _COLUMN = 100, 33
_FIELDS_ARE_IN = "A hyperparameter; --help=r2d2 [--env=...] lists that agent's."


def of_command(description: str, sections: command_line.Sections) -> str:
    """A screen of help: a module's docstring, then its flags."""
    lines = [description.strip()]
    for title, names in sections.items():  # whose titles stand out by themselves
        lines.append(title)
        for text, same in itertools.groupby(names, _text):
            first, *others = same
            if others:  # flags that one sentence explains, in one line
                lines.append(f"  {', '.join(f'--{name}=' for name in (first, *others))}  {text}")
            else:
                lines += _described(_left(first), text)
    return "\n".join([*lines, *_described("--helpfull", "Every flag, those of libraries too.")])


def of_agent(agent: str, said: Mapping[str, str]) -> str:
    """A screen or two of every field of an agent's Config.

    Args:
      agent: as `--agent` takes it.
      said: what was typed; `env` and `preset` may be there, whose values are shown then; else the
        paper's.
    """
    env, preset = said.get("env", ""), said.get("preset", catalogue.PRESETS[0])
    try:
        named = catalogue.named(agent)
        if len(named) > 1:
            raise ValueError(f"--help must name one agent, as --help={next(iter(named))}.")
        (name,) = named
        paper = catalogue.config(agent, env) if env else catalogue.entry(agent).config
        config, of = paper, "the paper's, for Atari"
        if env:
            suites.check(env)
            _, configs = settings.of_preset(preset, env, named, [name], {})
            config, of = configs[name], f"{env}, --preset={preset}"
    except ValueError as error:
        command_line.fail(str(error))
    lines = [f"--agent={agent}: {of}"]
    for field, declared in fields.declared(type(config)).items():
        value, published = getattr(config, field), getattr(paper, field)
        instead = f" [Paper: {_typed(published)}.]" * (value != published)
        lines += _described(f"--{name}.{field}={_typed(value)}", declared.meaning + instead)
    return "\n".join(lines)


def _typed(value: Any) -> str:
    return "None" if value is None else texts.typed(value)


def _text(name: str) -> str:
    return _FIELDS_ARE_IN if name == command_line.HYPERPARAMETER else flags.FLAGS[name].help or ""


def _left(name: str) -> str:
    """A flag as it is typed, with its default."""
    if name == command_line.HYPERPARAMETER:
        return f"--{name}="
    flag = flags.FLAGS[name]
    default = flag.default if flag.default is not None else ""
    if isinstance(default, list | tuple):
        default = ",".join(map(str, default))
    return f"--[no]{name}" if flag.boolean else f"--{name}={default}"


def _described(flag: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN)
    left = f"  {flag}"
    if len(left) >= _COLUMN:
        yield left
    else:
        yield left.ljust(_COLUMN) + (lines.pop(0) if lines else "")
    yield from (" " * _COLUMN + line for line in lines)
