"""Is every pod looked at when it is created? Asked without a pause, by dry runs."""

import threading
from contextlib import closing
from typing import Self

from driver.model.names import PLACEMENT_GATE
from tests.cluster.api import Api
from tests.helm.chart import Object


class Reviews:
    """Asks from a thread of its own while the context lasts; `asked` says how often.

    The hook lets a pod pass when it cannot be called, so what counts is whether it was there:
    `lost` has what came back without a gate.
    """

    def __init__(self, state: Object, spec: Object) -> None:
        self._state = state
        metadata = {"generateName": "review-"}
        self._pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reviews")
        self.asked = 0
        self.lost: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(Api(self._state)) as api:
                while not self._stop.is_set():
                    made = api.create("pods", self._pod, dryRun="All")
                    self.asked += 1
                    gates = made["spec"].get("schedulingGates", ())
                    if {"name": PLACEMENT_GATE} not in gates:
                        self.lost.append(f"pod {self.asked} was not looked at: {made['spec']}")
        except Exception as error:  # noqa: BLE001 - told to whoever asked for the reviews
            self.lost.append(f"the reviews broke off: {error!r}")
