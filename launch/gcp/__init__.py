"""Launches a run on Google Cloud: `--lp_launch_type=vertex_ai`."""
