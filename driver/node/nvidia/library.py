"""How NVIDIA's management library is opened, and how a card is asked that may not answer.

The bindings come with the extra `nvml`, the library itself with the GPU driver of the host.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pynvml
import structlog

from driver.node.errors import InventoryError

T = TypeVar("T")

# How NVML says that a card has no such thing, or that the driver is too old to know of it.
ABSENT = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_InvalidArgument,
    pynvml.NVMLError_FunctionNotFound,
)
# How NVML says that a card cannot be used, whatever it was asked for.
_GONE = (pynvml.NVMLError_GpuIsLost, pynvml.NVMLError_ResetRequired)

_Errors = type[Exception] | tuple[type[Exception], ...]

log = structlog.get_logger(__name__)


@contextmanager
def opened() -> Iterator[None]:
    """The library, ready for calls; may be nested, and used by several threads.

    Raises `InventoryError` when it cannot be used, and for every error of NVML's inside.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise InventoryError(
            f"NVML cannot be used: {error}; install the NVIDIA driver on this host and give the "
            "plugin its libnvidia-ml.so.1, or simulate cards"
        ) from error
    try:
        yield
    except pynvml.NVMLError as error:
        raise InventoryError(f"NVML stopped answering while cards were read: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def optional(read: Callable[..., T], *arguments: object) -> T | None:
    """What a call answers, None when the card has no such thing; other errors are raised."""
    try:
        return read(*arguments)
    except ABSENT:
        return None


class Questions:
    """Questions to one card, which goes on being asked after it has failed at one of them."""

    def __init__(self, handle: object) -> None:
        self._handle = handle
        # The first call that failed, and why; None while the card answers.
        self.failed: str | None = None

    def __call__(self, read: Callable[..., T], *arguments: object) -> T | None:
        """What the card answers; None when it has no such thing, or fails (see `failed`).

        None as well for what this process may not know: that says nothing about the card.
        """
        return self._asked(pynvml.NVMLError, read, *arguments)

    def perhaps(self, read: Callable[..., T], *arguments: object) -> T | None:
        """The same of a fact that a card can do without; only one that is gone fails at it."""
        return self._asked(_GONE, read, *arguments)

    def _asked(self, failures: _Errors, read: Callable[..., T], *arguments: object) -> T | None:
        try:
            return optional(read, self._handle, *arguments)
        except pynvml.NVMLError_NoPermission:
            log.info("NVML does not let this process ask", call=read.__name__)
            return None
        except pynvml.NVMLError as error:
            if isinstance(error, failures):
                self.failed = self.failed or f"{read.__name__}: {error}"
            else:
                log.info("a card does not tell", call=read.__name__, error=str(error))
            return None


def text(value: bytes | str) -> str:
    """A text of NVML's; structures have bytes where functions have str."""
    return value.decode() if isinstance(value, bytes) else value
