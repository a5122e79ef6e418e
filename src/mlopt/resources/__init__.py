"""What the machine or cluster can do: given by hand, or probed once and remembered."""

from mlopt.resources.descriptor import Resources

__all__ = ["Resources"]
