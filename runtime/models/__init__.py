"""The arithmetic of each family of models; one file per ``model_type``."""
