"""Machines and accelerators: what is named is what xmanager rents, or it is refused."""

import pytest
from absl import flags

from launch.gcp import options, quota
from launch.gcp.hardware import MACHINES, Hardware, parse
from run_folder.settings import SettingsError


def test_what_is_named_is_read() -> None:
    assert parse("gcp_actor", "n1-highmem-2") == Hardware("n1-highmem-2")
    assert parse("gcp_learner", "n1-standard-8+T4") == Hardware("n1-standard-8", "T4", 1)
    assert parse("gcp_learner", "n1-standard-16+V100x2") == Hardware("n1-standard-16", "V100", 2)
    assert parse("gcp_learner", "a2-highgpu-2g") == Hardware("a2-highgpu-2g", "A100", 2)
    assert parse("gcp_learner", "g2-standard-8+L4") == Hardware("g2-standard-8", "L4", 1)
    assert str(parse("gcp_learner", "n1-standard-16+V100x2")) == "n1-standard-16+V100x2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no machine"),
        ("n1-standard-3", "no machine of Vertex AI's"),
        ("n1-standard-8+", "no machine"),
        ("n1-standard-8+H100", "xmanager 0.8.5 would rent an N1 machine for H100"),
        ("a2-highgpu-1g+A100_80GB", "xmanager 0.8.5"),
        ("n1-standard-8+L4", "L4 with g2-standard-8"),
        ("n1-standard-8+T4x3", "carries 1, 2, 4 of T4, got 3"),
        ("n1-standard-16+V100", "carries 2, 4, 8 of V100, got 1"),
        ("n1-standard-96+T4x2", "carries 4 of T4, got 2"),
        ("a2-highgpu-1g+A100x2", "is always a2-highgpu-1g+A100"),
        ("g2-standard-8+T4", "is always g2-standard-8+L4"),
    ],
)
def test_what_cannot_be_had_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse("gcp_learner", text)
    assert said in str(error.value)
    assert f"--gcp_learner={text} " in str(error.value)


@pytest.mark.slow
def test_xmanager_rents_the_machine_that_was_named() -> None:
    xm = pytest.importorskip("xmanager.xm")
    vertex = pytest.importorskip("xmanager.cloud.vertex")
    xm_local = pytest.importorskip("xmanager.xm_local")
    names = [*MACHINES, "n1-standard-8+T4", "n1-standard-32+T4x4", "n1-highmem-16+V100x2"]
    for name in names:
        wanted = parse("gcp_learner", name)
        needs = xm.JobRequirements(**wanted.requirements())
        spec = vertex.get_machine_spec(
            xm.Job(executable=None, executor=xm_local.Vertex(requirements=needs))
        )
        assert spec["machine_type"] == wanted.machine
        assert spec.get("accelerator_count", 0) == wanted.number
        if wanted.accelerator:
            assert spec["accelerator_type"].name.endswith(f"_{wanted.accelerator}")


def test_quotas_add_up_over_pools() -> None:
    pools = [
        (Hardware("n1-highmem-8"), 1),
        (parse("gcp_learner", "a2-highgpu-2g"), 3),
        (Hardware("n1-highmem-2"), 258),
    ]
    assert quota.needs(pools) == [
        ("N1 vCPUs", 8 + 516, 2_200),
        ("boot disks, GB", 26_200, 75_000),
        ("A2 vCPUs", 72, None),
        ("A100", 6, 8),
    ]


def test_defaults_are_machines() -> None:
    for name in ("gcp_replay", "gcp_learner", "gcp_actor"):
        assert name in options.NAMES
        assert parse(name, str(flags.FLAGS[name].default)).machine in MACHINES
