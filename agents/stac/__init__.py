"""STAC and STACX: IMPALA that tunes its own loss (Zahavy et al. 2020)."""
