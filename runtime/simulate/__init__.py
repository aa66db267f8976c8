"""The replay laboratory: policies judged on recorded routing."""
