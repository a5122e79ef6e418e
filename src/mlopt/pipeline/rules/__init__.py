"""The rules, one file each; `mlopt.pipeline.planning.optimizer.RULES` is their order."""
