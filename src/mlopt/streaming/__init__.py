"""Many requests at once, in bounded memory: stages joined by gates with credits."""
