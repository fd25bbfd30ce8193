"""Which failures does a person see as one sentence? Must not know how they are printed."""


class ClusterError(Exception):
    """Something that the person at the terminal has to know or do; the text says both."""
