"""A run on several hosts: its program as files."""
