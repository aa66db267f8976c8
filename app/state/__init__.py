"""What is true now: objects that views show and to which they send intents."""
