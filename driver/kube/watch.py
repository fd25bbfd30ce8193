"""One watch connection, from its first to its last byte.

Reads events, notices silence and the server's errors. What the events mean for the state of the
world, and when to connect again, is the informer's business.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing

import msgspec

from driver.kube.errors import KubeError, Status, Unreachable, api_error, watch_error
from driver.kube.transport import Session
from driver.model.api import ObjectMeta
from driver.model.errors import InvalidObjectError
from driver.wire.decode import decode

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_OK = 200


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object still raw."""

    type: str
    object: msgspec.Raw


class Header(msgspec.Struct, frozen=True):
    """The part of an object that every kind has."""

    metadata: ObjectMeta


class Silence(Unreachable):  # what it is
    """Not a word came for too long: the connection is dead, or the place asked for does not exist.

    A watch from a version that the cluster has not reached, as after etcd was restored from a
    backup, is accepted and stays silent (seen on 1.37.2).
    """


class Watch:
    """One connection; `run` it once. It ends when the server closes it in order, or by `stop`."""

    def __init__(self, session: Session, path: str, params: Mapping[str, str]) -> None:
        self._session = session
        self._path = path
        self._params = params
        self._silence: asyncio.Timeout | None = None
        self._stopped = False

    async def run(self, receive: Callable[[WatchEvent], None], *, idle: float) -> None:
        """Hand every event to `receive`, in order.

        Raises Silence after `idle` seconds without a word; Unreachable when the connection breaks
        or says what is no event; the error of `driver.kube.errors` that the server answers or
        sends; and what `receive` raises.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(idle) as silence:
                self._silence = silence
                async with self._session.stream(self._path, params=self._params) as stream:
                    if stream.status != _OK:
                        what, body = f"watch {self._path}", await stream.body()
                        raise api_error(what, stream.status, stream.headers, body)
                    async with aclosing(stream.lines()) as lines:
                        async for line in lines:
                            if self._stopped:
                                # Lines that are here already would put the end off for ever.
                                return
                            silence.reschedule(loop.time() + idle)
                            receive(self._read(line))
        except TimeoutError as error:
            if self._stopped:
                return
            words = f"watch {self._path}: nothing heard for {idle:g} s"
            raise Silence(words, sent=True) from error

    def stop(self) -> None:
        """End the connection now."""
        self._stopped = True
        if self._silence is not None and not self._silence.expired():
            self._silence.reschedule(asyncio.get_running_loop().time())

    def _read(self, line: bytes) -> WatchEvent:
        try:
            event = decode(WatchEvent, line)
            if event.type == "ERROR":
                raise watch_error(f"watch {self._path}", decode(Status, event.object))
        except InvalidObjectError as error:
            raise Unreachable(
                f"watch {self._path}: a line that is no event: {error}", sent=True
            ) from error
        return event


def header(raw: msgspec.Raw) -> ObjectMeta:
    """The metadata of a raw object; raises KubeError when there is none."""
    try:
        return decode(Header, raw).metadata
    except InvalidObjectError as error:
        raise KubeError(f"an object without readable metadata: {error}") from error
