"""Code for a rival's own process, in an interpreter that has the rival installed."""
