"""Recipe of the demo model: a small dense chat model, its feed-forward blocks cut into experts."""
