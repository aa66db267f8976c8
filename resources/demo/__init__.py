"""Recipe of the demo model: a small dense chat model whose feed-forward blocks are split into experts."""
