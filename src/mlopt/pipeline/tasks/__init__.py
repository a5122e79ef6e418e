"""What single tasks do: one operator to one block, and how long that took."""
