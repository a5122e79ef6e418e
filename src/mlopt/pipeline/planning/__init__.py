"""From steps and data to a plan: build the graph, profile it, rewrite it."""
