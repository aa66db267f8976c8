"""Writing the prepared copy of a model: once, resumable, never in place."""
