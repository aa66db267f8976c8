"""Conversation to token ids, and token ids to text piece by piece."""
