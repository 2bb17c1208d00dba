"""The flags of a launch on Google Cloud; `launch.gcp.options` checks them."""

from absl import flags

LAUNCH_TYPE = "vertex_ai"

REGION = flags.DEFINE_string("gcp_region", None, "Where hosts are rented, such as us-central1.")
REPOSITORY = flags.DEFINE_string(
    "gcp_repository", None, "Of images: <region>-docker.pkg.dev/<project>/<name>."
)
HARDWARE = {
    kind: flags.DEFINE_string(f"gcp_{kind}", default, "Hosts: machine, +accelerator, xnumber.")
    for kind, default in (
        ("replay", "n1-highmem-8"),
        ("learner", "n1-standard-8+T4"),
        ("actor", "n1-highmem-2"),
    )
}
DRY_RUN = flags.DEFINE_boolean("gcp_dry_run", False, "Print the job; send nothing.")
NAMES = ("gcp_region", "gcp_repository", *(f"gcp_{kind}" for kind in HARDWARE), "gcp_dry_run")


def wanted() -> bool:
    """Whether the command line asks for Google Cloud."""
    launch_type: str = flags.FLAGS.lp_launch_type  # Launchpad's, which is imported by now
    return launch_type == LAUNCH_TYPE


def given() -> list[str]:
    """The flags of a launch on Google Cloud that the command line has."""
    return [f"--{name}" for name in NAMES if flags.FLAGS[name].present]
