"""The root of the errors that the pure core raises.

A request that simply does not fit is no error: the core returns that as a value.
"""


class QuadrantError(Exception):
    """Any error this project raises on purpose; its text is a sentence for the user."""


class InvalidObjectError(QuadrantError):
    """An object that no correct API server would have let through, or that cannot be read."""


class AllocationError(QuadrantError):
    """Allocation of these claims must stop: not "does not fit here", but "cannot be decided"."""


class TooDearError(QuadrantError):
    """What is asked may well have an answer, but takes longer to work out than others can wait."""
