"""The graph: operators, walks over them, and the order of what they do."""
