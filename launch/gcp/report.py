"""What `--gcp_dry_run` prints: the job, pool by pool, and what it takes of the quotas."""

from collections.abc import Iterable, Sequence

from launch.gcp import images, quota
from launch.gcp.images import Packaged


def text(packaged: Sequence[Packaged], region: str, repository: str, run_dir: str) -> str:
    """The whole report.

    Args:
      packaged: every pool, as Launchpad made them.
      region: where the job would run.
      repository: where its images would go.
      run_dir: of the run.
    """
    project = repository.split("/")[1]
    pools = [("pool", "hosts", "machine", "packages", "nodes")]
    for pool, config in packaged:
        host = (str(len(pool.nodes)), str(config.hardware), config.docker_requirements)
        pools.append((pool.name, *host, ranges(pool.labels)))
    needed = [("quota", "needed", f"documented in {quota.REGION}")]
    for name, number, documented in quota.needs(
        (config.hardware, len(pool.nodes)) for pool, config in packaged
    ):
        needed.append((name, f"{number:,}", "-" if documented is None else f"{documented:,}"))
    return "\n".join(
        [
            f"A job of Vertex AI's in {region}, project {project}, for the run {run_dir}.",
            f"Images: {repository}/{images.NAME}",
            "",
            *_table(pools),
            "",
            *_table(needed),
        ]
    )


def ranges(labels: Sequence[str]) -> str:
    """Labels of nodes, those that follow one another as a range: `actor/0-255, evaluator/0`."""
    found: list[list[str]] = []  # group, first index, last index
    for label in labels:
        group, index = label.split("/")
        if found and found[-1][0] == group and int(found[-1][2]) + 1 == int(index):
            found[-1][2] = index
        else:
            found.append([group, index, index])
    return ", ".join(
        f"{group}/{first}" + (f"-{last}" if last != first else "") for group, first, last in found
    )


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
