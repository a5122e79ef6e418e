"""mlopt."""
