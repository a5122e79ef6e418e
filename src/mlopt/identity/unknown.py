"""What is raised where the content of a value cannot be told for certain."""

from __future__ import annotations


class Unidentified(Exception):
    """A value has parts that nobody can look into, or that may change unseen."""
