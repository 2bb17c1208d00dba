"""Recurrent SAC: soft actor-critic on replayed sequences, for actions that are vectors."""
