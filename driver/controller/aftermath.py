"""What follows a ruling on a commit: users are told, refused pods get a node that fits."""

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Deny
from driver.controller.held import HeldDevices
from driver.controller.placement import Placement
from driver.controller.proposal import Proposal
from driver.controller.sentence import told
from driver.controller.telling import subject
from driver.kube.events import Recorder, Subject
from driver.model import events
from driver.model.ids import DeviceId


class Aftermath:
    """Nothing here delays the answer: every call returns at once."""

    def __init__(
        self, cluster: Cluster, placement: Placement, held: HeldDevices, recorder: Recorder
    ) -> None:
        self._cluster = cluster
        self._placement = placement
        self._held = held
        self._recorder = recorder

    def allocated(self, proposal: Proposal, ruling: Allow) -> None:
        """Tell on claim and pod what was chosen and why, in one line."""
        if ruling.explanation is None:
            return
        devices = [
            result.device_id() for result in ruling.results if result.driver == self._cluster.driver
        ]
        note = told(devices, ruling.explanation)
        for told_on in self._subjects(proposal):
            self._recorder.record(told_on, events.DEVICES_CHOSEN, note)

    def denied(self, proposal: Proposal, ruling: Deny) -> None:
        """Tell why, and nominate a node that fits (rule 9)."""
        for told_on in self._subjects(proposal):
            self._recorder.record(told_on, events.DEVICES_REFUSED, ruling.reason)
        pod = self._cluster.pod_of(proposal.claim)
        if pod is not None:
            self._placement.renominate(pod.metadata.uid)

    def believed_free(self, devices: frozenset[DeviceId]) -> None:
        """Have these devices tainted until they are released (rule 10)."""
        self._held.want(devices)

    def _subjects(self, proposal: Proposal) -> list[Subject]:
        metadata = proposal.claim.metadata
        subjects = [
            Subject(
                api_version="resource.k8s.io/v1",
                kind="ResourceClaim",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
            )
        ]
        pod = self._cluster.pod_of(proposal.claim)
        if pod is not None:
            subjects.append(subject(pod))
        return subjects
