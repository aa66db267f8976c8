"""Reading weights: which extents of which files hold what, and getting them into memory."""
