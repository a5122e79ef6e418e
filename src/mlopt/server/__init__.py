"""Models that many workers change at a time: blocks of arrays on the members of a mesh."""
