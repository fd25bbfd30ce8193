"""Short pods without a pause, while something else happens."""

import itertools
import time
from collections.abc import Sequence

from tests.cluster.api import Api
from tests.helm.beside import Beside
from tests.helm.chart import Object

_LOOK_S = 0.1
_AT_ONCE = 4
# A pod that waits for longer has been forgotten. Nothing else is measured by it.
_PATIENCE_S = 150.0


class Burst(Beside):
    """Keeps some pods going: each is created, runs, is deleted, and another follows.

    Use it as a context. At its end the last pods are waited for; `wrongs` then says what went
    wrong, `done` how many pods have run.
    """

    def __init__(self, state: Object, kinds: Sequence[Object], *, name: str) -> None:
        """`kinds` are the specs of pods, taken in turn; their names begin with `name`."""
        super().__init__(state, name="burst")
        self._name = name
        self._kinds = kinds
        self._names = itertools.count()
        self._born: dict[str, float] = {}
        self._leaving: set[str] = set()
        self.done = 0

    def work(self, api: Api) -> None:
        """Until all of its pods have gone."""
        while self._born or self._leaving or not self._stop.is_set():
            self._turn(api)
            time.sleep(_LOOK_S)

    def _turn(self, api: Api) -> None:
        there = {pod["metadata"]["name"]: pod for pod in api.list("pods", labelSelector="burst")}
        self._leaving &= set(there)
        for name, born in list(self._born.items()):
            if name not in there:
                self._give_up(name, "has vanished")
            elif self._is_over(name, there[name], born):
                api.delete("pods", name)
                self._leaving.add(name)
        while len(self._born) < _AT_ONCE and not self._stop.is_set():
            number = next(self._names)
            name = f"{self._name}-{number}"
            spec = self._kinds[number % len(self._kinds)]
            api.create("pods", _pod(name, spec))
            self._born[name] = time.monotonic()

    def _is_over(self, name: str, pod: Object, born: float) -> bool:
        status = pod.get("status", {})
        if status.get("phase") == "Failed":
            self._give_up(name, f"has failed: {status.get('reason')} {status.get('message')}")
        elif status.get("phase") == "Running":
            restarts = sum(one["restartCount"] for one in status.get("containerStatuses", ()))
            if restarts:
                self.wrongs.append(f"{name} was restarted")
            self.done += 1
            del self._born[name]
        elif time.monotonic() > born + _PATIENCE_S:
            self._give_up(name, f"waits: {status.get('conditions')}, {pod['spec']}")
        return name not in self._born

    def _give_up(self, name: str, why: str) -> None:
        self.wrongs.append(f"{name} {why}")
        del self._born[name]


def _pod(name: str, spec: Object) -> Object:
    metadata = {"name": name, "labels": {"burst": "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
