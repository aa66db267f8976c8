"""What the engine counts while it works, and the samples made from it."""
