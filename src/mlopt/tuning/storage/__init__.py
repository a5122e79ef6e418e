"""Where a study is remembered: an Optuna storage, written behind."""
