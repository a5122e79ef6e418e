"""Where the steps of a job run: one process, rounds, parts that go round, servers."""
