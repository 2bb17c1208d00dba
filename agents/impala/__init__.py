"""IMPALA: V-trace actor-critic (Espeholt et al., ICML 2018)."""
