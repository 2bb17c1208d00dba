"""Several runs that learn side by side, and from each other: their folder, rules and decisions."""
