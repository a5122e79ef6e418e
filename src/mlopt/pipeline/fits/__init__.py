"""Ways of fitting a step of a pipeline: the physical operators behind a logical one."""
