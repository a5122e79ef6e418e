"""Who trains: batched scans of linear models, and black boxes."""
