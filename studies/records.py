"""A file of trainings: what tells each from the others, and what came of it."""

import csv
import io
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

RunType = TypeVar("RunType", bound=NamedTuple)
ResultType = TypeVar("ResultType", bound=NamedTuple)


def read(
    path: pathlib.Path, run: type[RunType], result: type[ResultType]
) -> dict[RunType, ResultType]:
    """The trainings that a file holds; none where there is no file."""
    if not path.exists():
        return {}
    with path.open() as file:
        return {_parse(run, row): _parse(result, row) for row in csv.DictReader(file)}


def complete(
    path: pathlib.Path,
    runs: Sequence[RunType],
    train: Callable[[RunType], ResultType],
    result: type[ResultType],
) -> dict[RunType, ResultType]:
    """Makes the trainings that a file lacks, printing each; returns all that it then holds."""
    known = read(path, type(runs[0]), result)
    for run in runs:
        if run not in known:
            came_of_it = train(run)
            append(path, run, came_of_it)
            print(*run, *came_of_it, flush=True)
    return read(path, type(runs[0]), result)


def append(path: pathlib.Path, run: Any, result: Any) -> None:
    """Adds one training to a file, below a header if it is new."""
    extend(path, [(run, result)])


def extend(path: pathlib.Path, found: Iterable[tuple[Any, Any]]) -> None:
    """Adds several rows at once, so that a file never holds a part of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for run, result in found:
        if not (path.exists() or text.tell()):
            writer.writerow([*run._fields, *result._fields])
        results = (f"{x:.4f}" if isinstance(x, float) else x for x in result)
        writer.writerow([*run, *results])
    with path.open("a", newline="") as file:
        file.write(text.getvalue())


def _parse(kind: Any, row: dict[str, str]) -> Any:
    of_types = (int, float, str)
    types = {name: of if of in of_types else str for name, of in kind.__annotations__.items()}
    return kind(**{name: of(row[name]) for name, of in types.items()})
