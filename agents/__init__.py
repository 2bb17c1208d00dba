"""Agents: the contract, the recurrent actor, the learner shell, networks."""
