"""What a rival's own process runs, in an interpreter that has the rival installed."""
