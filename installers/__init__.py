"""Recipes that make what a person downloads, one for each platform, from one description."""
