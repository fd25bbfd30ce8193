"""The way to the API server: may be asked from the start, answers when the connection is there.

The kubelet's sockets are served first, because all that talks to the API server takes longer to
import than the rest of the plugin together.
"""

import asyncio
from typing import Protocol

from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import ClaimRef
from driver.node.errors import NodeError


class ClusterSide(Protocol):
    """What preparing needs of the cluster."""

    async def get_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """The claim as the API server has it now; None when there is none of that name."""
        ...

    def report_use(self, claim: ClaimRef, reason: str) -> None:
        """Tell whoever looks at the claim that another one holds its device."""
        ...

    def prepared(self, uid: str) -> None:
        """The claim is prepared; returns at once, whatever follows from it."""
        ...


class Link:
    """Stands for the cluster's side before there is one; make it where there is an event loop."""

    def __init__(self) -> None:
        self._side: asyncio.Future[ClusterSide] = asyncio.get_running_loop().create_future()

    def connect(self, side: ClusterSide) -> None:
        """From now on calls are answered, those that have waited too."""
        self._side.set_result(side)

    def close(self) -> None:
        """The plugin ends: what still waits for the connection is refused."""
        if not self._side.done():
            self._side.set_exception(NodeError("the plugin ended before it reached the API server"))
            # Retrieved here, because perhaps nobody has waited.
            self._side.exception()

    async def get_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """As `ClusterSide.get_claim`, once there is a connection."""
        side = await asyncio.shield(self._side)
        return await side.get_claim(namespace, name)

    def report_use(self, claim: ClaimRef, reason: str) -> None:
        """As `ClusterSide.report_use`; only for claims that have been read."""
        self._side.result().report_use(claim, reason)

    def prepared(self, uid: str) -> None:
        """As `ClusterSide.prepared`; only for claims that have been read."""
        self._side.result().prepared(uid)
