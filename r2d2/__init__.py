"""Recurrent Replay Distributed DQN (Kapturowski et al., ICLR 2019)."""
