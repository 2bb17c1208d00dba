"""N copies of one environment: their seeds, how agents see and act in them, how they die."""
