"""Ways of fitting operators on images."""
