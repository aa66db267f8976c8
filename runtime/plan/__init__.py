"""Deciding once, slowly and with reasons where the parts of a model go. Pure: data in, data out."""
