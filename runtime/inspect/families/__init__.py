"""One file per ``model_type``: its config as a ``ModelSpec``, and the names of its tensors."""
