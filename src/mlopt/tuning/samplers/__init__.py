"""Who proposes: Optuna behind ask and tell."""
