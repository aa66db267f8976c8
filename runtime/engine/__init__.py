"""The seam between the service and whatever generates text; free of torch."""
