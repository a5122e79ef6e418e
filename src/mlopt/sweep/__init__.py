"""Sweeps: from a table to a tested model, a plan that explains itself, and a report."""

import os

# Threads of OpenMP that spin while they wait take the cores from those that work: where the
# machine has other work too, boosting then takes ten times as long. It must be said before
# scikit-learn is loaded; what the user has set counts more.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
