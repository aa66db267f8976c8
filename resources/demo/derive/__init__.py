"""Scripts that made the committed derived files of the demo model; set-up does not need them."""
