"""How the window looks: colours, type and spacing by name; no behaviour."""
