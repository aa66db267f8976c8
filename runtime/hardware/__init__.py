"""What this PC has: totals, free amounts, limits; and the rates that others measured on it."""
