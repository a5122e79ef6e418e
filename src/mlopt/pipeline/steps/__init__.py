"""The user's steps: what they are, copies of them, and fitted models put back."""
