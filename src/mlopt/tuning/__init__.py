"""TuPAQ: model search with bandits and batched training, on an Optuna study."""
