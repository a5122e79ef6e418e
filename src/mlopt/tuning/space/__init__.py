"""What is searched: parameters, families, grids and defaults."""
