"""Every word that a person reads, free of Qt."""
