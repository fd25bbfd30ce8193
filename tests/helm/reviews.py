"""Is every pod looked at when it is created? Asked without a pause, by dry runs."""

from driver.model.names import PLACEMENT_GATE
from tests.cluster.api import Api
from tests.helm.beside import Beside
from tests.helm.chart import Object


class Reviews(Beside):
    """Asks while the context lasts; `asked` says how often.

    The hook lets a pod pass when it cannot be called, so what counts is whether it was there:
    `wrongs` has what came back without a gate.
    """

    def __init__(self, state: Object, spec: Object) -> None:
        super().__init__(state, name="reviews")
        metadata = {"generateName": "review-"}
        self._pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.asked = 0

    def work(self, api: Api) -> None:
        """One pod after the other."""
        while not self._stop.is_set():
            made = api.create("pods", self._pod, dryRun="All")
            self.asked += 1
            gates = made["spec"].get("schedulingGates", ())
            if {"name": PLACEMENT_GATE} not in gates:
                self.wrongs.append(f"pod {self.asked} was not looked at: {made['spec']}")
