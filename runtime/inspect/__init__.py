"""What a model folder holds and what is wrong with it, from its headers alone."""
