"""Terms of documents: vectorizers fitted and applied block by block."""
