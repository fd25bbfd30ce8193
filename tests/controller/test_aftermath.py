"""What users are told of a commit, on the claim and on its pod."""

from typing import cast

from driver.controller.aftermath import Aftermath
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Deny
from driver.controller.held import HeldDevices
from driver.controller.placement import Placement
from driver.controller.proposal import Proposal, read
from driver.kube.events import Recorder, Subject
from driver.model import events
from driver.model.core import Pod
from driver.model.events import EventKind
from driver.wire.decode import convert
from tests.controller.commits import (
    Json,
    claim,
    cluster,
    commit,
    gpu,
    picked,
    proposed,
    request,
    review,
)


class Told:
    """Remembers Events, and pods that are to get another node."""

    def __init__(self) -> None:
        self.events: list[tuple[str, EventKind, str]] = []
        self.renominated: list[str] = []

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """An Event."""
        self.events.append((f"{subject.kind} {subject.namespace}/{subject.name}", kind, note))

    def renominate(self, uid: str) -> None:
        """A pod whose commit was refused."""
        self.renominated.append(uid)


def owned(name: str) -> Json:
    """A claim of the pod `web`."""
    free = claim(name, request())
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web", "controller": True}
    return free | {"metadata": free["metadata"] | {"ownerReferences": [owner]}}


def aftermath(at: Cluster, told: Told) -> Aftermath:
    """What follows the rulings of this cluster."""
    pod = {"metadata": {"name": "web", "namespace": "ns", "uid": "uid-web"}, "spec": {}}
    at.put_pod(convert(Pod, pod))
    return Aftermath(at, cast("Placement", told), cast("HeldDevices", None), cast("Recorder", told))


def proposal(free: Json, *results: Json) -> Proposal:
    """The commit that was ruled on."""
    found = read(review(free, proposed(free, *results)))
    assert found is not None
    return found


def test_a_choice_is_told_with_its_reasons() -> None:
    """On the claim and on the pod that it is for."""
    at, told, free = cluster(a=[gpu(0), gpu(1)]), Told(), owned("c")
    after = aftermath(at, told)
    ruling = commit(at, free, picked("gpu-1"))
    assert isinstance(ruling, Allow)
    after.allocated(proposal(free, picked("gpu-1")), ruling)
    assert [(on, kind) for on, kind, _ in told.events] == [
        ("ResourceClaim ns/c", events.DEVICES_CHOSEN),
        ("Pod ns/web", events.DEVICES_CHOSEN),
    ]
    assert told.events[0][2].startswith("a/gpu-0 by compact, score ")


def test_a_refusal_is_told_and_the_pod_gets_another_node() -> None:
    """With what the scheduler was told."""
    at, told, free = cluster(a=[gpu(0)]), Told(), owned("c")
    after = aftermath(at, told)
    assert isinstance(commit(at, claim("other", request()), picked("gpu-0")), Allow)
    ruling = commit(at, free, picked("gpu-0"))
    assert isinstance(ruling, Deny)
    after.denied(proposal(free, picked("gpu-0")), ruling)
    assert told.events == [
        ("ResourceClaim ns/c", events.DEVICES_REFUSED, ruling.reason),
        ("Pod ns/web", events.DEVICES_REFUSED, ruling.reason),
    ]
    assert told.renominated == ["uid-web"]
