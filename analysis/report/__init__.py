"""The page that launch.report makes of runs."""
