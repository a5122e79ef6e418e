"""Numbers and categories: transformers and naive Bayes fitted in one pass over blocks."""
