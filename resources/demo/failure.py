"""Error of the demo model's recipe."""


class DemoBuildError(Exception):
    """A reason, in one sentence for the person, why the demo model could not be built."""
