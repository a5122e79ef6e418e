"""Linear models, components and clusters, fitted by mlopt's solvers."""
