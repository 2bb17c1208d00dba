"""What a peer's own process runs, in an interpreter that has the peer installed."""
