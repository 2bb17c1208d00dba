"""What launch.diagnose measures: stale states, parameter lag, memory."""

ANALYSES = ("discrepancy", "lag", "memory")
