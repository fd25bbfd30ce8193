"""TCP relays between the API server and the controllers: a Service, and a cable to pull out.

Runs in a thread of its own, so that a test may block.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Backend = Callable[[], int | None]
_CHUNK = 65536


class Relay:
    """Forwards connections to the port that `backend` names when one comes in.

    While it is `cut`, nothing passes, neither on new connections nor on old ones, and nobody is
    told: as when a cable is pulled out.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._whole = asyncio.Event()
        self._whole.set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        # The event loop itself keeps no hold on a connection of which one side is gone.
        self._connections: set[asyncio.Task[None] | None] = set()
        self.port = 0

    @contextmanager
    def running(self) -> Iterator["Relay"]:
        """Listen on a port of the loopback address."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def cut(self) -> None:
        """Let nothing pass."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let everything pass, also what has waited."""
        self._loop.call_soon_threadsafe(self._whole.set)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        while connections := asyncio.all_tasks() - {asyncio.current_task()}:
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
            # What was closed tells so in the next round; what was just accepted begins.
            await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        self._connections.add(connection)
        port = self._backend()
        try:
            if port is not None:
                await self._join(reader, writer, port)
        except* OSError:
            pass  # One side is gone; the closed connection tells the other.
        except* asyncio.CancelledError:
            pass  # The relay ends.
        finally:
            writer.close()
            self._connections.discard(connection)

    async def _join(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        from_there, to_there = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, to_there))
                both.create_task(self._pass(from_there, writer))
        finally:
            to_there.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()
