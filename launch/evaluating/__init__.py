"""What `launch.evaluate` does: plays episodes, keeps their rows, sums them up, films them."""
