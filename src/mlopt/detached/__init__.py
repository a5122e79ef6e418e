"""Jobs that outlive their client: submitted, followed, fetched, cancelled, resumed."""
