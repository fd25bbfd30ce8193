"""What happens to a pod that is being created: refused, or changed, or let through as it is.

The decision for `POST /pods`, pure: all that it rests on is in the context. A pod that asks for
our devices in any way gets the label and the scheduling gate; what it asks for in HAMi's words
becomes a claim. Asked again about the pod that came out, it has nothing more to do.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from driver.controller import (
    extended,
    misplaced,
    policies,
    translate,
    translate_patch,
    translate_selectors,
    translate_template,
)
from driver.controller.cards import Card
from driver.controller.policies import Defaults, Source
from driver.controller.translate import Ask, ImpossibleRequestError, ResourceNames
from driver.controller.translate_selectors import Wanted
from driver.controller.translate_template import MIB, Asked, Phase
from driver.model import names
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.deviceclass import DeviceClass
from driver.model.errors import QuadrantError
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate
from driver.policy.registry import BUILT_IN, Registry
from driver.wire import decode
from driver.wire.patch import Operation

# A pod that a kubelet made up; the API object is only its picture.
_MIRROR = "kubernetes.io/config.mirror"
_LONGEST = 1000


class ReviewContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision rests on besides the pod.

    `claims` and `templates` hold what `referenced` names and the namespace has. `cards` are the
    kinds of cards that are published now. `plugin_serves`: some node's device plugin has cards
    under the name that stands for a number of cards.
    """

    namespace: ObjectMeta
    defaults: Defaults
    features: Features
    classes: Mapping[str, DeviceClass] = {}
    claims: Mapping[str, ResourceClaim] = {}
    templates: Mapping[str, ResourceClaimTemplate] = {}
    cards: frozenset[Card] = frozenset()
    extended_resources_served: bool = False
    plugin_serves: bool = False
    resources: ResourceNames = ResourceNames()
    driver: str = names.DRIVER
    device_class: str = names.DRIVER
    registry: Registry = BUILT_IN


class Referenced(msgspec.Struct, frozen=True):
    """The names of the claims and templates that a pod is about."""

    claims: frozenset[str]
    templates: frozenset[str]


class Refused(msgspec.Struct, frozen=True):
    """The pod must not be created; the sentence is for its author."""

    message: str


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """The pod may be created with these changes, once the template exists."""

    operations: tuple[Operation, ...] = ()
    template: ResourceClaimTemplate | None = None
    warnings: tuple[str, ...] = ()


class _Translation(msgspec.Struct, frozen=True, kw_only=True):
    """Which containers are translated, and what came of it."""

    containers: frozenset[str] = frozenset()
    claim: str | None = None
    request_of: dict[str, str] = {}
    template: ResourceClaimTemplate | None = None
    warnings: tuple[str, ...] = ()


def referenced(pod: Mapping[str, Any]) -> Referenced:
    """What must be looked up in the pod's namespace before it can be reviewed."""
    entries = pod["spec"].get("resourceClaims") or ()
    return Referenced(
        frozenset(filter(None, (entry.get("resourceClaimName") for entry in entries))),
        frozenset(filter(None, (entry.get("resourceClaimTemplateName") for entry in entries))),
    )


def review_pod(pod: Mapping[str, Any], context: ReviewContext) -> Refused | Patch:
    """Decide on a raw pod that is being created."""
    typed = decode.convert(Pod, pod)
    if _MIRROR in typed.metadata.annotations:
        return Patch()
    try:
        translation = _translate(pod, typed, context)
        misplaced.check(typed, _claims(typed, context))
        _check_policies(typed, context)
    except QuadrantError as error:
        return Refused(_sentence(error))
    return Patch(
        operations=tuple(_operations(pod, typed, translation, context)),
        template=translation.template,
        warnings=(*translation.warnings, *_without_effect(typed, context)),
    )


def _sentence(error: QuadrantError) -> str:
    """What went wrong, also where an annotation of 256 KiB is quoted in it."""
    text = str(error)
    return f"{text}." if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _operations(
    pod: Mapping[str, Any], typed: Pod, translation: _Translation, context: ReviewContext
) -> Iterator[Operation]:
    only, claim, request_of = translation.containers, translation.claim, translation.request_of
    if only:
        yield from translate_patch.translated(
            pod, context.resources, only=only, claim=claim, request_of=request_of
        )
        yield from translate_patch.remembered(
            pod, context.resources, only=only, claim=claim, request_of=request_of
        )
    if claim is not None and translation.template is not None:
        yield translate_patch.claimed(pod, claim, translation.template.metadata.name)
    if claim is not None or _names_our_devices(typed, context):
        yield from translate_patch.labelled(pod)
        if _waits_for_placement(typed):
            yield from translate_patch.gated(pod)


def _waits_for_placement(pod: Pod) -> bool:
    """Whether the node axis is still open: a gate on a pod with a node would be refused."""
    owner = pod.metadata.controller()
    return not pod.spec.node_name and not (owner is not None and owner.kind == "DaemonSet")


# Annotations and policies


def _without_effect(pod: Pod, context: ReviewContext) -> Iterator[str]:
    """Annotations of ours that would be passed over, where others than the author mend them."""
    asked = (entry.resource_claim_template_name or "" for entry in pod.spec.resource_claims)
    yield from misplaced.around(
        [context.templates[name] for name in dict.fromkeys(asked) if name in context.templates],
        [
            context.classes[name]
            for name in _claimed_classes(pod, context)
            if name in context.classes
        ],
        context.namespace,
    )


def _check_policies(pod: Pod, context: ReviewContext) -> None:
    """Raise `UnknownPolicyError` for a policy of the pod, or one that would hold for it."""
    _own_policies(pod, context)
    for claim in (None, *_claims(pod, context)):
        policies.resolve(
            claim,
            pod,
            context.classes,
            context.namespace,
            defaults=context.defaults,
            driver=context.driver,
            registry=context.registry,
        )


def _own_policies(pod: Pod, context: ReviewContext) -> dict[str, str]:
    what = f"pod {pod.metadata.name or pod.metadata.generate_name}"
    return policies.own(pod.metadata, what, Source.POD, context.registry)


def _claims(pod: Pod, context: ReviewContext) -> Iterator[ResourceClaim]:
    """The claims of a pod as far as they are known, made from their templates where need be."""
    for entry in pod.spec.resource_claims:
        claim = context.claims.get(entry.resource_claim_name or "")
        template = context.templates.get(entry.resource_claim_template_name or "")
        if claim is not None:
            yield claim
        elif template is not None:
            yield ResourceClaim(metadata=template.spec.metadata, spec=template.spec.spec)


# Ours or not


def _names_our_devices(pod: Pod, context: ReviewContext) -> bool:
    return (
        _has_unknown_claim(pod, context)
        or any(_class_is_ours(name, context) for name in _claimed_classes(pod, context))
        or any(_class_is_ours(name, context) for name in _extended_classes(pod, context))
    )


def _has_unknown_claim(pod: Pod, context: ReviewContext) -> bool:
    """Whether a claim or template does not exist yet; it may turn out to be about our devices.

    A gate can be taken away later, but not added.
    """
    return any(
        (entry.resource_claim_name or "") not in context.claims
        and (entry.resource_claim_template_name or "") not in context.templates
        for entry in pod.spec.resource_claims
        if entry.resource_claim_name or entry.resource_claim_template_name
    )


def _claimed_classes(pod: Pod, context: ReviewContext) -> Iterator[str]:
    for claim in _claims(pod, context):
        yield from policies.class_names(claim)


def _extended_classes(pod: Pod, context: ReviewContext) -> Iterator[str]:
    """The classes behind the extended resources that the pod asks for (KEP-5004)."""
    if not context.extended_resources_served:
        return
    by_resource = extended.classes_by_resource(context.classes.values())
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for part in (container.resources.limits, container.resources.requests):
            for resource, amount in part.items():
                found = extended.class_of(resource, by_resource) if amount.nano else None
                if found is not None:
                    yield found


def _class_is_ours(name: str, context: ReviewContext) -> bool:
    found = context.classes.get(name)
    return found is not None and extended.is_ours(found, context.driver)


# Translation


def _translate(pod: Mapping[str, Any], typed: Pod, context: ReviewContext) -> _Translation:
    wanted = translate_selectors.read(typed.metadata.annotations)
    chosen = [
        (part, container)
        for part, _, container in translate_patch.containers(pod)
        if _is_translated(container, wanted, context)
    ]
    containers = frozenset(container["name"] for _, container in chosen)
    asked = list(_asked(chosen, context))
    if not asked:
        return _Translation(containers=containers)
    if typed.spec.node_name:
        raise ImpossibleRequestError(
            f"the pod asks for shares of cards and sets spec.nodeName to {typed.spec.node_name!r}, "
            "so that no scheduler would allocate them; use nodeSelector or affinity for the node"
        )
    found = translate_template.requests(
        asked, wanted, context.cards, device_class=context.device_class, driver=context.driver
    )
    return _Translation(
        containers=containers,
        claim=translate_patch.claim_name(pod),
        request_of=found.of_container,
        template=translate_template.template(
            found, context.namespace.name, _own_policies(typed, context)
        ),
        warnings=tuple(_warnings(asked, wanted, context)),
    )


def _is_translated(container: Mapping[str, Any], wanted: Wanted, context: ReviewContext) -> bool:
    """Whether a container's resources become a claim.

    A plain number of cards stays where Kubernetes itself makes a claim from it, or where a device
    plugin has such cards on some node: they would be out of reach else. It does not stay where the
    pod also says which cards: an extended resource cannot.
    """
    found = translate.present(container, context.resources)
    if not found or (found == (context.resources.count,) and not _ask(container, context)):
        return False
    by_resource = extended.classes_by_resource(context.classes.values())
    native = context.plugin_serves or (
        context.extended_resources_served
        and extended.class_of(context.resources.count, by_resource) is not None
    )
    return found != (context.resources.count,) or wanted.narrows or not native


def _ask(container: Mapping[str, Any], context: ReviewContext) -> Ask | None:
    return translate.read(container, context.resources)


def _asked(
    chosen: Iterable[tuple[str, Mapping[str, Any]]], context: ReviewContext
) -> Iterator[Asked]:
    for part, container in chosen:
        ask = _ask(container, context)
        if ask is None:
            continue
        _check(container, ask, context)
        yield Asked(container["name"], ask, _phase(part, container))


def _phase(part: str, container: Mapping[str, Any]) -> Phase:
    if part == "containers":
        return "main"
    return "sidecar" if container.get("restartPolicy") == "Always" else "init"


def _check(container: Mapping[str, Any], ask: Ask, context: ReviewContext) -> None:
    if (container.get("securityContext") or {}).get("privileged"):
        raise ImpossibleRequestError(
            f"container {container['name']!r} asks for cards and is privileged: it would see every "
            "card of the node whatever it is given; take one of the two away"
        )
    if ask.shares and not context.features.consumable_capacity:
        raise ImpossibleRequestError(
            f"container {container['name']!r} asks for a share of a card, which this cluster "
            "cannot give: it needs Kubernetes 1.36, or 1.35 with the feature gate "
            f"DRAConsumableCapacity; ask for whole cards with {context.resources.count} alone"
        )


def _warnings(asked: Iterable[Asked], wanted: Wanted, context: ReviewContext) -> Iterator[str]:
    """What cannot be given with the cards there are now; an autoscaler may bring others."""
    known = ", ".join(sorted({card.product_name for card in context.cards}))
    allowed = [card for card in context.cards if wanted.allows(card.product_name)]
    if context.cards and not allowed:
        yield f"no card that is published now is of a type that the pod allows; there are: {known}"
    largest = max((card.memory // MIB for card in allowed), default=None)
    for item in asked:
        if largest is not None and (item.ask.memory_mib or 0) > largest:
            yield (
                f"container {item.container!r} asks for {item.ask.memory_mib} MiB of one card, but "
                f"the largest that is published now and allowed has {largest} MiB"
            )
