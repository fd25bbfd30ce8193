"""What can go wrong with a selector, for the caller and inside an evaluation.

`CompileError` and `EvaluationError` leave the package. The other two live inside it: `CelError`
is CEL's own error value, which `||`, `&&` and the macros may absorb; `AbortError` ends the whole
evaluation whatever surrounds it. Nothing here knows syntax or devices.
"""

from driver.model.errors import AllocationError


class SelectorError(AllocationError):
    """A selector that cannot be decided; Kubernetes' allocator stops at it."""


class CompileError(SelectorError):
    """The expression is no legal selector; the text says where and why."""


class EvaluationError(SelectorError):
    """The expression is legal, and failed on one device; the text is CEL's own."""


class CelError(Exception):
    """An error as a value of the language; it may still be absorbed."""


class AbortError(Exception):
    """The end of an evaluation: its cost limit, or a failure that CEL cannot absorb."""


def no_such_overload(function: str = "") -> CelError:
    """The error of a call that no overload takes, worded as cel-go does."""
    return CelError(f"no such overload: {function}" if function else "no such overload")
