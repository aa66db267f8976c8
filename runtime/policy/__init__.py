"""Decisions about residency that are taken thousands of times: pure, data in, data out."""
