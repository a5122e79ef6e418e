"""The plan run: layers of tasks, jobs in order, rows kept."""
