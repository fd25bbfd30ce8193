"""docs/reference/errors.md: what can be refused or fail, with the words in which it is told."""

from collections.abc import Iterator, Mapping

import msgspec

from driver.controller.commit import Cause
from hack.reference import chart
from hack.reference.markdown import code, linked, page, prose, table
from hack.reference.messages import ErrorClass, classes


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Errors that are met at one place: where, and what to do about all of them."""

    title: str
    where: str
    remedy: str
    classes: tuple[str, ...]


# Why an allocation is refused, and what to do.
CAUSES: Mapping[Cause, tuple[str, str]] = {
    Cause.NOTHING_FITS: (
        "The node that the scheduler chose has no valid set of devices any more.",
        "Nothing: the scheduler tries again. Often: the cluster is full.",
    ),
    Cause.IN_USE: (
        (
            "The scheduler's own pick has to stand (policy `none`, or a claim that is only partly "
            "understood), and somebody has one of its devices."
        ),
        "Nothing: the scheduler tries again.",
    ),
    Cause.UNKNOWN_POLICY: (
        "The claim's policy or weights mean nothing, and its pod did not pass the webhook.",
        "Correct what the sentence names.",
    ),
    Cause.REFUSED_BEFORE: (
        "The same write was refused seconds ago and came again on an old version of the claim.",
        "Nothing.",
    ),
    Cause.CHECKS_DISAGREE: (
        "The search and the check after it do not agree about the set. Nothing is stored.",
        "Please report it, with `kubectl quadrant snapshot --redact`.",
    ),
    Cause.NOT_SEEN_YET: (
        "The controller's watch has not shown this version of the claim within 3 s.",
        "Nothing, once. Often: `quadrant_watch_silence_seconds`, and the load of the API server.",
    ),
    Cause.NOT_LEADING: (
        "The replica that was asked does not lead, or has led for too short a time.",
        "Nothing for 20 s after a change of leader. Longer: `kubectl quadrant doctor`.",
    ),
}
# Sentences that are put together in more than one place.
_PUT_TOGETHER = {
    "UnknownAnnotationError": (
        "annotation … of … is not known; did you mean …? (known on a …: …)",
        "annotation … of … means nothing on a …, only on: …",
    ),
    "UnknownPolicyError": ("annotation … of …: policy … is not known: expected …",),
}
SECTIONS = (
    Section(
        title="Refused pods",
        where="The API server's answer to whoever creates the pod, or the Event `FailedCreate` on "
        "the ReplicaSet, Job or StatefulSet that does. Also in `quadrant simulate` and `migrate`.",
        remedy="Correct what the sentence names: docs/policies.md, docs/hami.md.",
        classes=("ImpossibleRequestError", "UnknownAnnotationError", "UnknownPolicyError",
                 "PolicyError", "WeightsError"),
    ),
    Section(
        title="Refused configurations",
        where="The API server's answer to whoever creates a ResourceClaim, a template or a "
        "DeviceClass with configuration for this driver; with the path to the entry in front.",
        remedy="Correct the entry: docs/sharing.md. The same words on a pod that waits mean that "
        "the webhook was away when the object was made.",
        classes=("InvalidObjectError",),
    ),
    Section(
        title="Allocations that stop",
        where="`kubectl quadrant explain` and the Event `NoNodeFits`. The commit hook keeps the "
        "scheduler's choice where it meets one of these.",
        remedy="The claim, its class or what a driver publishes has to be mended; another node "
        "does not help. Selectors that fail have Kubernetes' own words after these.",
        classes=("AllocationError", "CapacityError", "InvalidPoolsError", "TooDearError",
                 "ScorerError"),
    ),
    Section(
        title="Claims that are not prepared",
        where="The Event `FailedPrepareDynamicResources` on the pod (`kubectl describe pod`), and "
        "the plugin's log on that node. The kubelet asks again by itself.",
        remedy="docs/troubleshooting.md#a-pod-stays-in-containercreating.",
        classes=("ClaimRefusedError", "DoubleUseError", "StorageError", "HardwareError",
                 "CardFailedError"),
    ),
    Section(
        title="The node plugin",
        where="Its log; those about its settings end it.",
        remedy="docs/node-plugin.md, docs/troubleshooting.md#devices-are-missing. What is wrong "
        "with rules is also told by the Event `AttributeRulesRefused`.",
        classes=("NodeError", "SettingsError", "InventoryError", "SourceFailedError",
                 "RulesError"),
    ),
    Section(
        title="The controller",
        where="Its log; all but those about certificates end it, and it begins anew.",
        remedy="docs/install.md, "
        "docs/troubleshooting.md#the-api-server-refuses-claims-status-updates.",
        classes=("ControllerSettingsError", "CertificateError", "TurnedBackError", "HandlerError",
                 "TracingError"),
    ),
    Section(
        title="Talking to the API server",
        where="The logs of both processes, and what commands print. What the server itself says is "
        "passed on.",
        remedy="`Forbidden`: a right is missing (docs/install.md#rights, docs/cli.md). What was "
        "only a bad moment is tried again.",
        classes=("KubeError", "CredentialsError", "Unreachable", "Silence", "ApiError",
                 "BadRequest", "Unauthorized", "Forbidden", "NotFound", "Conflict",
                 "AlreadyExists", "Gone", "Invalid", "Retryable", "TooManyRequests"),
    ),
    Section(
        title="Commands",
        where="stderr. The exit status is 2 where the command was called wrongly (UsageError), "
        "else 1.",
        remedy="docs/cli.md, docs/simulate.md, docs/explain.md.",
        classes=("UsageError", "ManifestError", "BoundError", "TraceError", "SubjectError",
                 "UnknownNodeError", "CordonError", "ForbiddenError", "RefusedError",
                 "CannotEditError", "UnhealthyError", "UnknownReleaseError", "ConflictError",
                 "PatchError"),
    ),
)  # fmt: skip


def text() -> str:
    """The page."""
    return page("Errors", _lines())


def _lines() -> Iterator[str]:
    known = {one.name: one for one in classes()}
    yield from prose(
        """
        In which words something is refused or fails. An ellipsis stands for what differs from
        case to case; search this page for the words around it. Every sentence says itself what
        was expected.
        """
    )
    yield ""
    yield "## Refused commits"
    yield ""
    yield from prose(
        """
        The scheduler's write of an allocation is refused: the Event `DevicesRefused` on claim
        and pod, and the label `reason` of `quadrant_commit_denials_total`.
        """
    )
    yield from table(
        ("reason", "means", "what to do"),
        ((code(cause), meaning, remedy) for cause, (meaning, remedy) in CAUSES.items()),
    )
    yield from prose(
        """
        `Quadrant could not decide on … in time or failed at it`: the controller's log has the
        reason under the review's uid; it is safe to try again.
        """
    )
    yield ""
    for section in SECTIONS:
        yield from _section(section, known)
    yield from _chart()


def _chart() -> Iterator[str]:
    yield "## The chart"
    yield ""
    yield "`helm install` and `helm upgrade` refuse values that do not exist or fit, and say:"
    yield ""
    yield from (f"- {code(text)}" for text in chart.refusals())
    yield ""
    yield "Its admission policies refuse writes of our own accounts; the process' log has the 403:"
    yield ""
    yield from (f"- {code(text)}" for text in chart.policies())


def _section(section: Section, known: Mapping[str, ErrorClass]) -> Iterator[str]:
    yield f"## {section.title}"
    yield ""
    yield f"**Where.** {linked(section.where)}"
    yield ""
    yield f"**What to do.** {linked(section.remedy)}"
    yield ""
    for name in section.classes:
        found = known[name]
        yield f"**{name}**: {found.about}"
        yield ""
        for message in sorted({*found.messages, *_PUT_TOGETHER.get(name, ())}):
            yield f"- {code(message.replace('`', chr(39)))}"
        yield ""
