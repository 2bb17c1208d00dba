"""Which of the kernel's counts of processes that it killed is believed."""

import pathlib

import pytest

from launch.local import out_of_memory

V2 = "0::/user.slice/run.scope\n"
V1 = "9:name=systemd:/\n4:memory:/docker/a:b\n0::/\n"
MACHINE = {"proc/vmstat": "pgfault 12\noom_kill 9\n"}


@pytest.mark.parametrize(
    ("group", "files", "kills"),
    [
        (V2, {"user.slice/run.scope/memory.events": "oom 5\noom_kill 2\noom_group_kill 7\n"}, 2),
        (V2, {"memory.events": "oom 5\noom_kill 3\n"}, 3),  # a container's
        (V1, {"memory/docker/a:b/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4),
        (V1, {"memory/memory.oom_control": "under_oom 0\noom_kill 5\n"}, 5),
        (V1, {"memory/docker/a:b/memory.oom_control": "under_oom 0\n"}, 9),  # before Linux 4.13
        (V2, {}, 9),
        ("", {}, 9),
    ],
)
def test_the_nearest_count_is_believed(
    group: str,
    files: dict[str, str],
    kills: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(out_of_memory, "_ROOT", tmp_path)
    assert out_of_memory.kills() == 0  # nothing can be read
    of_groups = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": group, **of_groups, **MACHINE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert out_of_memory.kills() == kills
