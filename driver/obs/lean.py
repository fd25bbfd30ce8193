"""How a process that logs for machines starts soon: structlog without what is for terminals."""

import sys
from importlib import import_module


def import_structlog() -> None:
    """Import structlog without rich, which it uses for tracebacks where it finds it.

    That saves a fifth of a second of CPU and 6 MiB. Whoever else wants rich still gets it. Nothing
    happens where structlog has been imported before.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    # Python's own way to say that a module is not to be had.
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]
