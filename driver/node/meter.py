"""What the plugin counts, for whoever counts it: nobody, unless it is told to serve metrics.

Prometheus' library costs every node memory, so `driver.node.metered` is imported on demand only.
"""

from collections.abc import Callable, Sequence

from driver.model.resourceslice import Device
from driver.node.settings import NodeSettings
from driver.node.state.store import ClaimStore


class Meter:
    """Takes note of nothing, and serves nothing."""

    def claim(self, operation: str, *, done: bool, seconds: float) -> None:
        """A claim was prepared or unprepared, or could not be (`operation`: one of the two)."""

    def double_use(self) -> None:
        """A claim was refused for a device that another one holds."""

    def slices(self, *, done: bool) -> None:
        """The slices were written, or could not be."""

    def registered(self, *, accepted: bool) -> None:
        """What the kubelet made of the plugin."""

    async def serve(self, devices: Callable[[], Sequence[Device]], store: ClaimStore) -> None:
        """Serve what was counted until cancelled, if it is to be served at all."""


NOBODY = Meter()


def meter(settings: NodeSettings) -> Meter:
    """The one that the settings ask for."""
    if not settings.metrics_port:
        return NOBODY
    from driver.node.metered import PrometheusMeter  # noqa: PLC0415

    return PrometheusMeter(settings.metrics_host, settings.metrics_port)
