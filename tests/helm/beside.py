"""What goes on beside a test, in a thread of its own, for as long as a context lasts."""

import threading
from abc import ABC, abstractmethod
from contextlib import closing
from typing import Self

from tests.cluster.api import Api
from tests.helm.chart import Object


class Beside(ABC):
    """Runs `work` from the beginning of the context on, and waits for it at the end.

    `wrongs` says afterwards what went wrong, an exception of `work` included.
    """

    def __init__(self, state: Object, *, name: str) -> None:
        """`state` is that of the cluster; `name` is what the thread is called."""
        self._state = state
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self.wrongs: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def work(self, api: Api) -> None:
        """Go on until `_stop` is set."""

    def _run(self) -> None:
        try:
            with closing(Api(self._state)) as api:
                self.work(api)
        except Exception as error:  # noqa: BLE001 - told to whoever asked for it
            self.wrongs.append(f"{self._thread.name} broke off: {error!r}")
