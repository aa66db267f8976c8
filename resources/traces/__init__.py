"""Real routing of published models, for the replay laboratory."""
