"""Multi-task PopArt-IMPALA (Hessel et al., AAAI 2019)."""
