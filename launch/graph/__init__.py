"""The Launchpad program of a run: its nodes and what runs inside them."""
