"""What `launch.diagnose` measures of a run: a module for each of the paper's analyses."""
