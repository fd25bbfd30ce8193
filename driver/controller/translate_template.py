"""How what containers ask for becomes one ResourceClaimTemplate, named by its content.

The same content has the same name, so the replicas of a workload share one template, and
kube-controller-manager makes a claim for each pod from it. Pure; who creates and collects
templates does so on the decisions made here.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from driver.controller import translate_selectors
from driver.controller.cards import Card
from driver.controller.translate import MAX_DEVICES, Ask, ImpossibleRequestError
from driver.controller.translate_selectors import Wanted
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.ids import ObjectKey
from driver.model.quantity import Quantity, whole
from driver.model.resourceclaim import (
    CapacityRequirements,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from driver.wire import encode

MIB = 1024 * 1024
# The API's limit (`FirstAvailableDeviceRequestMaxSize`).
MAX_ALTERNATIVES = 8
# `names.LAST_USED` is written anew when it is older.
TOUCH_AFTER = timedelta(minutes=15)
# A template is in use from before its pod is stored, so a pod that nobody sees yet must be
# thought of: it is there at the latest when the API server gives up its creation (34 s).
UNUSED_AFTER = timedelta(hours=1)


Phase = Literal["init", "sidecar", "main"]
"""When a container runs: alone before all others, beside them from early on, or with the rest."""


class Asked(msgspec.Struct, frozen=True):
    """What one container asks for, and when it runs."""

    container: str
    ask: Ask
    phase: Phase = "main"


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a claim, and which of them each container uses."""

    requests: tuple[DeviceRequest, ...]
    constraints: tuple[DeviceConstraint, ...]
    of_container: dict[str, str]


def requests(
    asked: Sequence[Asked],
    wanted: Wanted,
    cards: Iterable[Card],
    *,
    device_class: str,
    driver: str,
) -> Requests:
    """One request a container; an init container uses one that covers what it asks for.

    Raises `ImpossibleRequestError` when that is more than one claim can hold, or a percentage
    of cards that are not known.
    """
    shared = _share_out(asked)
    own = [item for item in asked if item.container not in shared]
    devices = sum(item.ask.count for item in own)
    if devices > MAX_DEVICES:
        raise ImpossibleRequestError(
            f"the containers ask for {devices} cards together, but one claim holds at most "
            f"{MAX_DEVICES}"
        )
    name_of = {item.container: f"gpu-{index}" for index, item in enumerate(own)}
    builder = _Builder(translate_selectors.selectors(wanted, driver), device_class, driver)
    sizes = sorted({card.memory for card in cards if wanted.allows(card.product_name)})
    return Requests(
        requests=tuple(builder.request(name_of[item.container], item.ask, sizes) for item in own),
        constraints=tuple(
            DeviceConstraint(requests=(name_of[item.container],), match_attribute=names.NUMA_NODE)
            for item in own
            if wanted.one_numa_node and item.ask.count > 1
        ),
        of_container=name_of | {first: name_of[other] for first, other in shared.items()},
    )


def _share_out(asked: Sequence[Asked]) -> dict[str, str]:
    """For each init container that needs no request of its own, the container whose it uses.

    What the containers of the main phase hold is held anyway. Init containers follow each other,
    so that one request can serve several; the one that covers most of the others holds it. A
    sidecar may run beside an init container, so that the two never share.
    """
    shared: dict[str, str] = {}
    first = [item for item in asked if item.phase == "init"]
    holders = [item for item in asked if item.phase == "main"]
    for item in sorted(first, key=lambda it: -sum(it.ask.covers(other.ask) for other in first)):
        holder = next((other for other in holders if other.ask.covers(item.ask)), None)
        if holder is None:
            holders.append(item)
        else:
            shared[item.container] = holder.container
    return shared


class _Builder(msgspec.Struct, frozen=True):
    """What all requests of one pod have in common."""

    selectors: tuple[DeviceSelector, ...]
    device_class: str
    driver: str

    def request(self, name: str, ask: Ask, sizes: Sequence[int]) -> DeviceRequest:
        if ask.memory_percentage is None:
            memory = None if ask.memory_mib is None else whole(ask.memory_mib * MIB, "BinarySI")
            return DeviceRequest(name=name, exactly=self._exactly(ask, memory, self.selectors))
        if not sizes or len(sizes) > MAX_ALTERNATIVES:
            raise _no_percentage(ask.memory_percentage, sizes)
        return self._part_of_a_card(name, ask, ask.memory_percentage, sizes)

    def _part_of_a_card(
        self, name: str, ask: Ask, percentage: int, sizes: Sequence[int]
    ) -> DeviceRequest:
        """A claim holds amounts, no percentages: one alternative for each size of card.

        The smallest card goes first, so that the large ones stay free.
        """
        exactly = [
            self._exactly(
                ask,
                _part(size, percentage),
                (*self.selectors, translate_selectors.memory_is(size, self.driver)),
            )
            for size in sizes
        ]
        if len(exactly) == 1:
            return DeviceRequest(name=name, exactly=exactly[0])
        return DeviceRequest(
            name=name,
            first_available=tuple(
                DeviceSubRequest(
                    name=f"memory-{size}",
                    device_class_name=item.device_class_name,
                    selectors=item.selectors,
                    count=item.count,
                    capacity=item.capacity,
                )
                for size, item in zip(sizes, exactly, strict=True)
            ),
        )

    def _exactly(
        self, ask: Ask, memory: Quantity | None, selectors: tuple[DeviceSelector, ...]
    ) -> ExactDeviceRequest:
        return ExactDeviceRequest(
            device_class_name=self.device_class,
            selectors=selectors,
            count=ask.count,
            capacity=_capacity(memory, ask.cores),
        )


def _part(size: int, percentage: int) -> Quantity:
    """So many percent of a card, in whole MiB and rounded down, as HAMi counts; at least one."""
    return whole(max(1, size // MIB * percentage // 100) * MIB, "BinarySI")


def _capacity(memory: Quantity | None, cores: int | None) -> CapacityRequirements | None:
    """What is not named here is taken whole: that is the default of our published policies."""
    amounts: dict[str, Quantity] = {}
    if memory is not None:
        amounts[names.MEMORY] = memory
    if cores is not None:
        amounts[names.CORES] = whole(cores)
    return CapacityRequirements(requests=amounts) if amounts else None


def _no_percentage(percentage: int, sizes: Sequence[int]) -> ImpossibleRequestError:
    known = ", ".join(f"{size // MIB} MiB" for size in sizes) or "none"
    reason = (
        f"more than {MAX_ALTERNATIVES} sizes of cards are allowed"
        if sizes
        else "no card that the pod allows is published yet, so that the amount is not known"
    )
    return ImpossibleRequestError(
        f"{percentage} % of a card's memory cannot be asked for: {reason} (known: {known}); "
        "ask for an amount in MiB, or narrow the types of cards"
    )


def template(found: Requests, namespace: str, policies: Mapping[str, str]) -> ResourceClaimTemplate:
    """The template for these requests; claims made from it carry the pod's policies.

    Its name is a hash of all that makes two templates differ.
    """
    spec = ResourceClaimTemplateSpec(
        metadata=ObjectMeta(annotations=dict(sorted(policies.items()))),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=found.requests, constraints=found.constraints)
        ),
    )
    digest = hashlib.sha256(msgspec.json.encode(_sorted(encode.builtins(spec)))).hexdigest()
    metadata = ObjectMeta(
        name=f"quadrant-{digest[:16]}", namespace=namespace, labels={names.TEMPLATE_LABEL: "true"}
    )
    return ResourceClaimTemplate(metadata=metadata, spec=spec)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def body(wanted: ResourceClaimTemplate, now: datetime) -> bytes:
    """The template as it is sent to be created."""
    document = encode.builtins(wanted)
    document["apiVersion"], document["kind"] = "resource.k8s.io/v1", "ResourceClaimTemplate"
    document["metadata"].setdefault("annotations", {})[names.LAST_USED] = stamp(now)
    return msgspec.json.encode(document)


def touch_due(existing: ResourceClaimTemplate, now: datetime) -> bool:
    """Whether `names.LAST_USED` of a template that is used again must be written anew."""
    return now - _last_used(existing) > TOUCH_AFTER


def unused(
    templates: Iterable[ResourceClaimTemplate], pods: Iterable[Pod], now: datetime
) -> tuple[ResourceClaimTemplate, ...]:
    """The templates of ours that no pod names and none was made from for `UNUSED_AFTER`.

    Delete them with their resourceVersion as a precondition: a pod that is being created this
    moment touches its template first, and then wins.
    """
    used = {
        ObjectKey(pod.metadata.namespace, claim.resource_claim_template_name)
        for pod in pods
        for claim in pod.spec.resource_claims
        if claim.resource_claim_template_name
    }
    return tuple(
        item
        for item in templates
        if names.TEMPLATE_LABEL in item.metadata.labels
        and ObjectKey(item.metadata.namespace, item.metadata.name) not in used
        and now - _last_used(item) > UNUSED_AFTER
    )


def stamp(now: datetime) -> str:
    """A time as the API writes it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _last_used(item: ResourceClaimTemplate) -> datetime:
    """When it was last used or, where that cannot be read, created."""
    for text in (item.metadata.annotations.get(names.LAST_USED), item.metadata.creation_timestamp):
        try:
            at = datetime.fromisoformat(text or "")
        except ValueError:
            continue
        # People write annotations too, some without a zone; times of the API are in UTC.
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return datetime.min.replace(tzinfo=UTC)
