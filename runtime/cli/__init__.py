"""``larderctl``: the same runtime in a terminal, without logic of its own."""
