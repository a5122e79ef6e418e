"""What the machine or cluster can do: given by hand, or probed once and remembered."""

from mlopt.resources.calibration import Calibration, Factors
from mlopt.resources.cluster_probe import identity
from mlopt.resources.descriptor import Resources

__all__ = ["Calibration", "Factors", "Resources", "identity"]
