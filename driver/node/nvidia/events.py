"""The health port over NVIDIA's management library: XIDs as events, all else by looking."""

import ctypes
import time
from collections.abc import Iterable
from contextlib import suppress

import pynvml
import structlog

from driver.node.card import Card
from driver.node.health.port import NO_RECOVERY, Reading, SourceFailedError, Xid
from driver.node.nvidia.library import Questions, optional

_RECOVERIES = {
    pynvml.NVML_GPU_RECOVERY_ACTION_NONE: NO_RECOVERY,
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: "gpu-reset",
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: "node-reboot",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: "drain-p2p",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "drain-and-reset",
    pynvml.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: "imex-recovery",
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: "bus-reset",
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: "system-reboot",
}
# An event of memory errors only says that it is time to look at the counters.
_EVENTS = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError
# The library as a whole is of no use until it is opened anew.
_FATAL = (
    pynvml.NVMLError_Uninitialized,
    pynvml.NVMLError_DriverNotLoaded,
    pynvml.NVMLError_LibRmVersionMismatch,
    pynvml.NVMLError_LibraryNotFound,
)
# A card that comes back is seen only by a library that was opened since.
_REOPEN_S = 15.0

log = structlog.get_logger(__name__)


class NvmlHealth:
    """One open line to NVML; the library is opened and closed with it."""

    def __init__(self, cards: Iterable[Card]) -> None:
        """Raises `SourceFailedError` when NVML cannot be opened."""
        self._cards = tuple(cards)
        self._open()

    def wait(self, seconds: float) -> tuple[Xid, ...] | None:
        """As the port says; a card that is just being lost wakes it too."""
        try:
            event = pynvml.nvmlEventSetWait_v2(self._events, int(seconds * 1000))
        except pynvml.NVMLError_Timeout:
            return None
        except _FATAL as error:
            raise SourceFailedError(f"NVML delivers no events: {error}") from error
        except pynvml.NVMLError:
            # Such as GpuIsLost, which NVML goes on saying at once while a card is away. Looking
            # tells which card it is.
            time.sleep(seconds)
            return ()
        index = self._indexes.get(_address(event.device))
        if event.eventType != pynvml.nvmlEventTypeXidCriticalError or index is None:
            return ()
        return (Xid(index=index, number=event.eventData),)

    def read(self) -> tuple[Reading, ...]:
        """A look at every card; opens the library anew while one is away."""
        readings = tuple(self._read(card) for card in self._cards)
        is_away = any(reading.lost is not None for reading in readings)
        if is_away and time.monotonic() - self._opened_at > _REOPEN_S:
            self.close()
            self._open()
        return readings

    def close(self) -> None:
        """Let go of the library."""
        try:
            pynvml.nvmlEventSetFree(self._events)
            pynvml.nvmlShutdown()
        except pynvml.NVMLError as error:
            log.info("NVML did not close tidily", error=str(error))

    def _open(self) -> None:
        self._opened_at = time.monotonic()
        # By address of the card's handle, which is what an event names.
        self._indexes: dict[int, int] = {}
        self._handles: dict[int, object] = {}
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise SourceFailedError(f"NVML cannot be opened: {error}") from error
        try:
            self._events = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            pynvml.nvmlShutdown()
            raise SourceFailedError(f"NVML makes no event set: {error}") from error
        for card in self._cards:
            # One that does not answer is tried again at every look.
            with suppress(pynvml.NVMLError):
                self._listen(card)

    def _listen(self, card: Card) -> object:
        """Hear of a card's events, where it has any; its handle."""
        handle = _handle(card)
        kinds = _EVENTS & (optional(pynvml.nvmlDeviceGetSupportedEventTypes, handle) or 0)
        try:
            if kinds & pynvml.nvmlEventTypeXidCriticalError:
                pynvml.nvmlDeviceRegisterEvents(handle, kinds, self._events)
                self._indexes[_address(handle)] = card.index
        except pynvml.NVMLError_NotSupported:
            log.warning("this card reports no XIDs; it is polled only", gpu=card.index)
        self._handles[card.index] = handle
        return handle

    def _read(self, card: Card) -> Reading:
        try:
            handle = self._handles.get(card.index) or self._listen(card)
            # The cheapest call that the card itself must answer.
            pynvml.nvmlDeviceGetMemoryInfo(handle)
        except _FATAL as error:
            raise SourceFailedError(f"NVML answers no more: {error}") from error
        except pynvml.NVMLError as error:
            return Reading(index=card.index, lost=str(error))
        ask = Questions(handle)
        rows = ask(pynvml.nvmlDeviceGetRemappedRows)
        return Reading(
            index=card.index,
            uncorrected=ask(
                pynvml.nvmlDeviceGetTotalEccErrors,
                pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                pynvml.NVML_VOLATILE_ECC,
            ),
            remap_failed=bool(rows and rows[3]),
            recovery=_recovery(ask),
            has_events=_address(handle) in self._indexes,
        )


def _handle(card: Card) -> object:
    if card.uuid:
        return pynvml.nvmlDeviceGetHandleByUUID(card.uuid)
    if card.pci_bus_id:
        return pynvml.nvmlDeviceGetHandleByPciBusId(card.pci_bus_id)
    return pynvml.nvmlDeviceGetHandleByIndex(card.index)


def _recovery(ask: Questions) -> str | None:
    fields = ask(pynvml.nvmlDeviceGetFieldValues, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if not fields or fields[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    action = fields[0].value.uiVal
    return _RECOVERIES.get(action, f"other-{action}")


def _address(handle: object) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
