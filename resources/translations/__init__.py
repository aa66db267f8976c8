"""The words of the window in other languages: one ``.po`` file for each, named by its code."""
