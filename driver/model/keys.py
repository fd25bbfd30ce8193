"""Which annotations, labels and scheduling gates Quadrant understands, and on which objects.

A key that is not here means nothing; one in our own domain is refused or warned of (see
`driver.controller.misplaced`). docs/reference/annotations.md is made from the table.
"""

from enum import StrEnum

import msgspec

from driver.model import names


class Sort(StrEnum):
    """What a key is to the API."""

    ANNOTATION = "annotation"
    LABEL = "label"
    GATE = "scheduling gate"


class On(StrEnum):
    """Kinds of objects that carry keys."""

    POD = "Pod"
    # Also the `spec.metadata` of a template, which becomes that of its claims.
    CLAIM = "ResourceClaim"
    TEMPLATE = "ResourceClaimTemplate"
    CLASS = "DeviceClass"
    NAMESPACE = "Namespace"
    NODE = "Node"
    TAINT_RULE = "DeviceTaintRule"
    CDI = "CDI file"


class Writer(StrEnum):
    """Who writes it."""

    USERS = "you"
    CORDON = "`quadrant cordon`, or you"
    POD_HOOK = "the webhook for pods"
    CONTROLLER = "the controller"
    PLUGIN = "the node plugin"
    SCHEDULER = "kube-scheduler"
    CONTROLLER_MANAGER = "kube-controller-manager"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key: where it stands, who writes it, which values it takes and what they mean."""

    name: str
    sort: Sort = Sort.ANNOTATION
    on: tuple[On, ...]
    writer: Writer
    values: str
    meaning: str

    def for_users(self) -> bool:
        """Whether people set it."""
        return self.writer in (Writer.USERS, Writer.CORDON)


_PLACED = (On.POD, On.CLAIM, On.NAMESPACE)
_POLICY = "policies, joined by commas: docs/policies.md"

# Set by people: the choice of devices.
_WISHES = (
    Key(
        name=names.NODE_POLICY,
        on=_PLACED,
        writer=Writer.USERS,
        values=_POLICY,
        meaning="How the node is chosen.",
    ),
    Key(
        name=names.GPU_POLICY,
        on=_PLACED,
        writer=Writer.USERS,
        values=_POLICY,
        meaning="How the devices of the node are chosen.",
    ),
    Key(
        name=names.SCORING_WEIGHTS,
        on=_PLACED,
        writer=Writer.USERS,
        values="`slot=N,core=N,memory=N`",
        meaning="What counts how much in how full a device is.",
    ),
    Key(
        name=names.CORDONED,
        on=(On.NODE,),
        writer=Writer.CORDON,
        values="names of devices, joined by commas",
        meaning="Nothing new goes to these cards: the plugin taints them.",
    ),
)

# HAMi's, understood where ours are absent.
_FROM_HAMI = (
    Key(
        name=names.HAMI_NODE_POLICY,
        on=_PLACED,
        writer=Writer.USERS,
        values="as ours",
        meaning=f"As `{names.NODE_POLICY}`, which goes first.",
    ),
    Key(
        name=names.HAMI_GPU_POLICY,
        on=_PLACED,
        writer=Writer.USERS,
        values="as ours; `topology-aware` is `topology`",
        meaning=f"As `{names.GPU_POLICY}`, which goes first.",
    ),
    Key(
        name=names.HAMI_SCORING_WEIGHTS,
        on=_PLACED,
        writer=Writer.USERS,
        values="as ours",
        meaning=f"As `{names.SCORING_WEIGHTS}`, which goes first.",
    ),
    Key(
        name=names.HAMI_USE_TYPE,
        on=(On.POD,),
        writer=Writer.USERS,
        values="parts of product names, joined by commas",
        meaning="Only cards whose `productName` contains one of these, in either case.",
    ),
    Key(
        name=names.HAMI_NO_TYPE,
        on=(On.POD,),
        writer=Writer.USERS,
        values="parts of product names, joined by commas",
        meaning="No card whose `productName` contains one of these.",
    ),
    Key(
        name=names.HAMI_USE_UUID,
        on=(On.POD,),
        writer=Writer.USERS,
        values="UUIDs, joined by commas",
        meaning="Only these cards.",
    ),
    Key(
        name=names.HAMI_NO_UUID,
        on=(On.POD,),
        writer=Writer.USERS,
        values="UUIDs, joined by commas",
        meaning="None of these cards.",
    ),
    Key(
        name=names.HAMI_NUMA_BIND,
        on=(On.POD,),
        writer=Writer.USERS,
        values="`true`, `false`",
        meaning="All cards of a container from one NUMA node.",
    ),
    Key(
        name=names.HAMI_MODE,
        on=(On.POD,),
        writer=Writer.USERS,
        values="`hami-core`",
        meaning="How a card is shared; every other mode is refused.",
    ),
)

# Written by Quadrant itself.
_OURS = (
    Key(
        name=names.PLACEMENT_GATE,
        sort=Sort.GATE,
        on=(On.POD,),
        writer=Writer.POD_HOOK,
        values="",
        meaning="The pod waits for its node; the controller lifts it.",
    ),
    Key(
        name=names.POD_LABEL,
        sort=Sort.LABEL,
        on=(On.POD,),
        writer=Writer.POD_HOOK,
        values="`true`",
        meaning="The pod asks for devices of ours; only such pods are watched.",
    ),
    Key(
        name=names.LEADER_LABEL,
        sort=Sort.LABEL,
        on=(On.POD,),
        writer=Writer.CONTROLLER,
        values="`true`",
        meaning="The controller's pod that leads; the Service of the commit hook selects it.",
    ),
    Key(
        name=names.ORIGINAL_RESOURCES,
        on=(On.POD,),
        writer=Writer.POD_HOOK,
        values="JSON: by container, its limits and requests",
        meaning="What was asked for before it became a claim.",
    ),
    Key(
        name=names.EXTENDED_RESOURCES,
        on=(On.POD,),
        writer=Writer.POD_HOOK,
        values="JSON: a list of container, resource, claim and request",
        meaning="Which request of the claim serves which resource now.",
    ),
    Key(
        name=names.TEMPLATE_LABEL,
        sort=Sort.LABEL,
        on=(On.TEMPLATE,),
        writer=Writer.CONTROLLER,
        values="`true`",
        meaning="Made from pods' resources; deleted when no pod uses it any more.",
    ),
    Key(
        name=names.LAST_USED,
        on=(On.TEMPLATE,),
        writer=Writer.CONTROLLER,
        values="a time (RFC 3339)",
        meaning="When a pod was last created from it, to a quarter of an hour.",
    ),
    Key(
        name=names.FENCE,
        on=(On.CLAIM,),
        writer=Writer.CONTROLLER,
        values="a UUID that never repeats; a leader's stands behind `leader-PROCESS-`",
        meaning="Gives the claim a new version, so that no older answer can land.",
    ),
    Key(
        name=names.HELD,
        sort=Sort.LABEL,
        on=(On.TAINT_RULE,),
        writer=Writer.CONTROLLER,
        values="`true`",
        meaning="Taints a device that the scheduler wrongly believes free, until it is; or wakes "
        "the scheduler by a taint without effect.",
    ),
    Key(
        name=names.CLAIM_ENTRY,
        on=(On.CDI,),
        writer=Writer.PLUGIN,
        values="JSON: the claim's entry in the checkpoint",
        meaning="From these a lost checkpoint is rebuilt.",
    ),
)

# Kubernetes' own that decisions rest on.
_OF_KUBERNETES = (
    Key(
        name=names.EXTENDED_CLAIM,
        on=(On.CLAIM,),
        writer=Writer.SCHEDULER,
        values="`true`",
        meaning="The claim was made for extended resources of a pod (KEP-5004).",
    ),
    Key(
        name=names.POD_CLAIM_NAME,
        on=(On.CLAIM,),
        writer=Writer.CONTROLLER_MANAGER,
        values="a name in the pod's `spec.resourceClaims`",
        meaning="For which entry of its pod the claim was made from a template.",
    ),
)

ALL = (*_WISHES, *_FROM_HAMI, *_OURS, *_OF_KUBERNETES)


def annotations(on: On) -> dict[str, Key]:
    """The annotations that mean something on objects of this kind, by name."""
    return {key.name: key for key in ALL if key.sort is Sort.ANNOTATION and on in key.on}
