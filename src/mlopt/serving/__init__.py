"""A model as a service: rows of many clients in one call, each answered as if alone."""
