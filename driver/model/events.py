"""Every Event that Quadrant writes: what it is called, on which objects, what to do about it.

An Event is recorded as one of these, so that none can be missing here; docs/reference/events.md
is made from the table. Reasons are an interface: people and alerts select Events by them.
"""

import msgspec


class EventKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of Event; `warning` says that it has the type Warning instead of Normal."""

    # In the API's terms: why it is written, and what was being done.
    reason: str
    action: str
    warning: bool = False
    # Kinds of the objects that it is written on.
    on: tuple[str, ...]
    # What the sentence looks like; names in capitals stand for what differs.
    note: str
    meaning: str
    remedy: str = ""


NODE_NOMINATED = EventKind(
    reason="NodeNominated",
    action="Place",
    on=("Pod",),
    note="node NODE by POLICY, score SCORE (TERMS); next NODE, SCORE behind; N nodes out: REASON",
    meaning="The node axis has decided; the scheduler tries this node first.",
)
NO_NODE_FITS = EventKind(
    reason="NoNodeFits",
    action="Place",
    warning=True,
    on=("Pod",),
    note="WHY, so that it is left to the scheduler: N nodes: REASON (such as NODE); "
    "what would help: REMEDY",
    meaning="No node has the devices now. The gate is lifted, so that the pod becomes "
    "Unschedulable and an autoscaler sees it.",
    remedy="What the sentence says would help; `kubectl quadrant explain` has it for every node. "
    "The pod gets a nomination by itself as soon as a node fits.",
)
DEVICES_CHOSEN = EventKind(
    reason="DevicesChosen",
    action="Allocate",
    on=("ResourceClaim", "Pod"),
    note="POOL/DEVICE by POLICY, score SCORE (TERMS); next POOL/DEVICE, SCORE behind; "
    "N devices no candidate: REASON",
    meaning="The GPU axis has decided: these devices are the claim's.",
)
DEVICES_REFUSED = EventKind(
    reason="DevicesRefused",
    action="Allocate",
    warning=True,
    on=("ResourceClaim", "Pod"),
    note="claim NAMESPACE/NAME cannot have devices of node NODE: REASON; the scheduler will try "
    "again",
    meaning="The commit hook has refused an allocation, because nothing valid is free any more or "
    "because it must not answer now.",
    remedy="Nothing where it comes once or twice: the scheduler tries again, with a new "
    "nomination. Again and again on one node: see docs/troubleshooting.md#a-pod-stays-in-pending. "
    "Kinds of reasons: docs/reference/errors.md#refused-commits.",
)
DEVICE_IN_USE = EventKind(
    reason="DeviceInUse",
    action="Prepare",
    warning=True,
    on=("ResourceClaim",),
    note="claim NAMESPACE/NAME must wait: REASON. It was allocated while still in use here, and is "
    "free again when the other claim's pods have ended on this node",
    meaning="The node plugin does not prepare the claim, because another one still holds the "
    "device on the node: usually of a pod that was deleted by force while its containers run on.",
    remedy="Wait until these have ended; the kubelet asks again. When it lasts, look on the node "
    "for the pod of the claim that is named. Where both claims are allocated the same device, "
    "please report it.",
)
UNKNOWN_CARD = EventKind(
    reason="UnknownCard",
    action="Cordon",
    warning=True,
    on=("Node",),
    note="annotation quadrant.dev/cordoned names DEVICE, which is no GPU of this node; it has …",
    meaning="A card is to be closed that the node does not have; the others that are named are "
    "closed.",
    remedy="Correct the annotation, or `kubectl quadrant uncordon NODE/DEVICE`.",
)
RULES_REFUSED = EventKind(
    reason="AttributeRulesRefused",
    action="Publish",
    warning=True,
    on=("Node",),
    note="FILE, line N: WHAT; the last good rules stay in use",
    meaning="The rules for attributes of your own cannot be used; those from before stay in use.",
    remedy="Correct `node.attributeRules` of the chart; new rules are taken over by themselves.",
)

ALL = (
    NODE_NOMINATED,
    NO_NODE_FITS,
    DEVICES_CHOSEN,
    DEVICES_REFUSED,
    DEVICE_IN_USE,
    UNKNOWN_CARD,
    RULES_REFUSED,
)
