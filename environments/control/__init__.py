"""The DeepMind Control Suite and the Real-World RL suite."""
