"""How much of a drive's life is used up by what was written to it. Pure."""

TYPICAL_ENDURANCE_TB = 300.0
"""What a drive of 500 GB is usually made to bear. Data sheets of consumer drives state 600 TB for
each TB of size with three bits in a cell (Samsung 970 EVO Plus and 990 EVO, WD Black SN770), and
about a third of that with four (Crucial P3 Plus)."""
_TB = 1e12


def wear_ratio(num_bytes: int, endurance_tb: float) -> float:
    """Return which part of a drive's life that is; 0 for the endurance takes the typical one."""
    return num_bytes / ((endurance_tb or TYPICAL_ENDURANCE_TB) * _TB)
