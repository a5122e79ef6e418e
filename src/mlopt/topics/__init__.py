"""Topic models: what documents are about, from the words that they have."""
