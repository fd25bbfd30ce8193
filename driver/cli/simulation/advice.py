"""What would make a pod fit that waits, as `quadrant explain` says it of a real cluster."""

from driver.cli.explanation.inquiry import Given, Inquiry
from driver.cli.explanation.remedies import remedies
from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.world import World
from driver.controller.needs import needs
from driver.controller.question import ask
from driver.model.core import Pod
from driver.wire import decode


class Adviser:
    """Advises pods of one world; pods that ask the same of the same state share the answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[tuple[bytes, int], tuple[str, ...]] = {}

    def would_fit(self, raw: Raw) -> tuple[str, ...]:
        """One sentence for each thing that would help; none where it waits for no devices."""
        cluster = self._world.cluster
        pod = decode.convert(Pod, self._world.pod(raw))
        needed = needs(pod, cluster)
        asked = None if needed.missing or pod.spec.scheduling_gates else ask(pod, needed, cluster)
        if asked is None:
            return ()
        key = asked.question.key, cluster.changes.now
        if key not in self._known:
            inquiry = Inquiry(asked, cluster, Given())
            fits = inquiry.best_node() is not None
            self._known[key] = () if fits else remedies(inquiry, cluster)
        return self._known[key]
