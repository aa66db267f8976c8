"""Inspecting GGUF files: headers, split sets, and what their metadata says as configs say it."""
