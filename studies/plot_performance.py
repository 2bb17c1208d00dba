"""Draws what the benchmarks measured and writes the tables: python -m studies.plot_performance

docs/data/performance.jsonl holds the last line of each benchmark that was run:

    python -m benchmarks.learner --agent=r2d2 | tail -1 >> docs/data/performance.jsonl

The tables of docs/performance.md and README.md are made of it, no number in them by hand.
"""

import hashlib
import pathlib
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from studies import arguments
from studies import performance_results as results
from studies.performance_results import Line
from studies.performance_rows import GPU_ROWS, HEADLINES, ROWS

DOCS = arguments.DOCS
DATA = DOCS / "data/performance.jsonl"
ROOFLINE = DOCS / "images/performance_roofline.png"
COST = DOCS / "images/performance_cost.png"
PAGES = {DOCS / "performance.md": ROWS, DOCS.parent / "README.md": HEADLINES}
_IMAGES = f"""![Useful work of each learner's step against the roof](images/{ROOFLINE.name})

![Cost of a step, a frame and an item against how many there are](images/{COST.name})"""


def main() -> None:
    lines = results.read(DATA)
    if lines:
        draw_roofline(lines, ROOFLINE)
        draw_cost(lines, COST)
    for page in PAGES:
        page.write_text(written(page, lines))


def written(page: pathlib.Path, lines: Sequence[Line]) -> str:
    """A page with its table, and the images where it shows them."""
    text = results.replace_block(page.read_text(), "table", results.table(PAGES[page], lines))
    if page.parent == DOCS:
        text = results.replace_block(text, "images", _IMAGES if lines else "")
        text = results.replace_block(text, "gpu", results.table(GPU_ROWS, lines))
        text = results.replace_block(text, "profiles", results.profiles(lines))
    return text


def fingerprint(lines: Sequence[Line]) -> str:
    """Of the data that an image was drawn from; it carries this as its `Description`."""
    return hashlib.sha256(repr(list(lines)).encode()).hexdigest()


def drawn_from(image: pathlib.Path) -> str:
    """The fingerprint that an image carries."""
    with Image.open(image) as opened:
        return str(opened.info["Description"])


def draw_roofline(lines: Sequence[Line], path: pathlib.Path) -> None:
    """Useful work a second against the batch size, below the matrix product, by precision."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, constrained_layout=True)
    learners = results.learners(lines)
    for axis, precision in zip(axes, ("float32", "bfloat16"), strict=True):
        for label in sorted(learners):
            if label.endswith(precision):
                sizes, work = results.by_batch_size(learners[label], "useful_work")
                axis.plot(sizes, work, "o-", ms=4, label=label.removesuffix(f", {precision}"))
        every = [line for found in learners.values() for line in found]
        roof = results.median(every, f"matmul_{precision}")
        if roof is not None:
            axis.axhline(roof, color="black", ls="--", label=f"matrix product, {precision}")
        axis.set_title(precision)
        _finish(axis, "batch size")
    axes[0].set_ylabel("useful work, GFLOP/s")
    axes[0].set_ylim(bottom=0)
    _save(figure, path, lines)


def draw_cost(lines: Sequence[Line], path: pathlib.Path) -> None:
    """Microseconds for a step of acting, a frame learned from and an item sampled."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), constrained_layout=True)
    for prefix in ("environments", "inference", "both"):
        _draw_curve(axes[0], results.curve(lines, "actor", prefix), prefix)
    for label, found in sorted(results.learners(lines).items()):
        _draw_curve(axes[1], results.by_batch_size(found, "learner"), label)
    for prefix in ("sampled", "batches", "inserted"):
        _draw_curve(axes[2], results.curve(lines, "replay", prefix), prefix)
    titles = ("acting, µs a step", "learning, µs a frame", "replay, µs an item")
    labels = ("environments", "batch size", "shards")
    for axis, title, label in zip(axes, titles, labels, strict=True):
        axis.set_title(title)
        axis.set_yscale("log")
        _finish(axis, label)
    _save(figure, path, lines)


def _draw_curve(axis: Axes, points: tuple[list[int], list[float]], label: str) -> None:
    counts, rates = points
    if counts:
        axis.plot(counts, [1e6 / rate for rate in rates], "o-", ms=4, label=label)


def _finish(axis: Axes, xlabel: str) -> None:
    curves = [np.asarray(line.get_xdata()) for line in axis.lines if line.get_marker() == "o"]
    counts = sorted({int(x) for curve in curves for x in curve})
    axis.set_xscale("log", base=2)
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.set_xlabel(xlabel)
    axis.grid(alpha=0.3)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=7)


def _save(figure: Figure, path: pathlib.Path, lines: Sequence[Line]) -> None:
    figure.savefig(path, dpi=110, metadata={"Description": fingerprint(lines)})
    plt.close(figure)


if __name__ == "__main__":
    arguments.positional(__doc__)
    main()
