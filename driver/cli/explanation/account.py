"""The account of one pod or claim: what is recorded, and what planner and allocator say now.

For what is allocated already, the question is asked again as if the subject had nothing yet: the
rest of the cluster is as it is now, and may have been otherwise at the time.
"""

import msgspec

from driver.cli.explanation.inquiry import Given, Inquiry
from driver.cli.explanation.remedies import remedies
from driver.cli.explanation.report import Account, Recorded
from driver.cli.explanation.subject import Case, Subject, find
from driver.cli.live.listing import Listing
from driver.cli.live.view import Rules, expect_nominated, unplaced, view
from driver.controller.cluster import Cluster
from driver.controller.gates import gated
from driver.controller.needs import needs
from driver.controller.proposal import node_of
from driver.controller.question import ask
from driver.model import names
from driver.policy.registry import NONE

ALLOCATED, PENDING, NOTHING = "allocated", "pending", "nothing-to-choose"
_COMPUTED = "All of it is computed now, from the state of the cluster, as the controller does."
_ANEW = (
    "Who has what is as the cluster has it stored. Scores, runners-up and rejections are computed "
    "anew: as if {subject} had nothing yet, and all else as it is now. What was said at the time "
    "is recorded in events."
)


def account(
    listing: Listing, subject: Subject, rules: Rules, recorded: tuple[Recorded, ...] = ()
) -> Account:
    """Explain; raises `SubjectError`, `UnknownPolicyError`, or what a scorer of others raises."""
    case = find(subject, view(listing, rules))
    given = _given(case)
    undone = tuple(given.allocations)
    cluster = view(listing, rules, undone_pod=case.pod.metadata.uid, undone_claims=undone)
    expect_nominated(cluster, but=case.pod.metadata.uid)
    found = _pending(case, cluster) if not undone else _allocated(case, cluster, given)
    return msgspec.structs.replace(found, recorded=recorded, warnings=listing.unreadable)


def _given(case: Case) -> Given:
    """What the case has; nothing where one of its claims still waits."""
    allocations = {
        claim.metadata.uid: claim.status.allocation
        for claim in case.claims
        if claim.status.allocation is not None
    }
    if len(allocations) < len(case.claims):
        return Given()
    nodes = [node_of(one.node_selector) for one in allocations.values()]
    return Given(next(filter(None, nodes), case.pod.spec.node_name or None), allocations)


def _allocated(case: Case, cluster: Cluster, given: Given) -> Account:
    pod = cluster.pods.get(case.pod.metadata.uid, unplaced(case.pod))
    asked = ask(pod, needs(pod, cluster), cluster)
    basis = _ANEW.format(subject=case.subject)
    if asked is None or given.node is None:
        return Account(
            subject=str(case.subject),
            state=ALLOCATED,
            summary=f"{case.subject} has its devices, which are bound to no single node.",
            basis=basis,
        )
    inquiry = Inquiry(asked, cluster, given)
    node, devices = inquiry.node_axis(), inquiry.device_axis(given.node)
    has = ", ".join(devices.chosen.names) if devices.chosen is not None else "no devices"
    return Account(
        subject=str(case.subject),
        state=ALLOCATED,
        summary=f"{case.subject} has {has} on node {given.node}.",
        basis=basis,
        node=node,
        devices=devices,
    )


def _pending(case: Case, cluster: Cluster) -> Account:
    pod = cluster.pods.get(case.pod.metadata.uid, unplaced(case.pod))
    needed = needs(pod, cluster)
    subject = str(case.subject)
    if needed.missing:
        waits = f"{subject} waits for what does not exist yet: {', '.join(needed.missing)}."
        return Account(subject=subject, state=PENDING, summary=waits, basis=_COMPUTED)
    asked = ask(pod, needed, cluster)
    if asked is None:
        says = f"{subject} has no claims, and asks for no resource that a DeviceClass stands for."
        return Account(subject=subject, state=NOTHING, summary=says, basis=_COMPUTED)
    inquiry = Inquiry(asked, cluster, Given())
    best = inquiry.best_node()
    return Account(
        subject=subject,
        state=PENDING,
        summary=_waits(case, best, asked.policies.node.value),
        basis=_COMPUTED,
        node=inquiry.node_axis(),
        devices=inquiry.device_axis(best),
        would_fit=() if best is not None else remedies(inquiry, cluster),
    )


def _waits(case: Case, best: str | None, node_policy: str) -> str:
    subject = case.subject
    if not case.real:
        alone = f"{subject} waits: no pod uses it. For a pod that asks for nothing else, "
        return alone + (f"node {best} would be the best." if best else "no node would fit.")
    if best is None:
        return f"{subject} waits: no node fits."
    fits = "fits on" if node_policy == NONE else "would get"
    return f"{subject} waits, though it {fits} node {best} now: {_waits_for(case)}."


def _waits_for(case: Case) -> str:
    if gated(case.pod):
        return f"the controller has not lifted its gate {names.PLACEMENT_GATE} yet"
    if case.pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in case.pod.spec.scheduling_gates)
        return f"it waits for scheduling gate {gates}"
    return "the scheduler has the next word"
