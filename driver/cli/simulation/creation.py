"""How a pod comes into being: our admission, the API server, and the claims from its templates."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.world import World
from driver.controller import translate_template
from driver.controller.pods import Refused, ReviewContext, referenced, review_pod
from driver.controller.translate import ResourceNames
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate
from driver.simulator import claims
from driver.simulator.defaults import defaulted
from driver.simulator.patching import patched
from driver.wire import decode

# Templates remember when they were used last; here that is always the same moment.
_EPOCH = datetime.fromtimestamp(0, UTC)


class Created(msgspec.Struct, frozen=True):
    """The pod as it is stored, and what admission had to say about it."""

    pod: Raw
    warnings: tuple[str, ...]


def create(world: World, raw: Mapping[str, Any]) -> Created | Refused:
    """Create a pod from its manifest, with the claims that its templates lead to."""
    pod = defaulted(raw)
    ruling = review_pod(pod, _context(world, pod))
    if isinstance(ruling, Refused):
        return ruling
    if ruling.template is not None:
        _ensure(world, ruling.template)
    # Names are made after admission; the hook sees `generateName` only.
    stored = world.api.create(patched(pod, ruling.operations))
    return Created(_with_claims(world, stored), ruling.warnings)


def _context(world: World, pod: Raw) -> ReviewContext:
    namespace = pod["metadata"]["namespace"]
    names = referenced(pod)
    cluster, rules = world.cluster, world.rules

    def found(kind: str, wanted: frozenset[str], shape: type[Any]) -> dict[str, Any]:
        objects = {name: world.api.get(kind, namespace, name) for name in wanted}
        return {name: decode.convert(shape, raw) for name, raw in objects.items() if raw}

    return ReviewContext(
        namespace=world.namespace(namespace),
        defaults=rules.defaults,
        features=rules.release.features,
        classes=cluster.classes,
        claims=found("ResourceClaim", names.claims, ResourceClaim),
        templates=found("ResourceClaimTemplate", names.templates, ResourceClaimTemplate),
        cards=world.cards,
        extended_resources_served=rules.release.extended_resources,
        plugin_serves=cluster.has_plugin_for(ResourceNames().count),
        driver=rules.driver,
        device_class=rules.driver,
        registry=cluster.registry,
    )


def _ensure(world: World, template: ResourceClaimTemplate) -> None:
    metadata = template.metadata
    if world.api.get("ResourceClaimTemplate", metadata.namespace, metadata.name) is None:
        world.api.create(defaulted(msgspec.json.decode(translate_template.body(template, _EPOCH))))


def _with_claims(world: World, pod: Raw) -> Raw:
    namespace = pod["metadata"]["namespace"]

    def template_of(name: str) -> Raw | None:
        return world.api.get("ResourceClaimTemplate", namespace, name)

    statuses = [
        {"name": name, "resourceClaimName": world.api.create(claim)["metadata"]["name"]}
        for name, claim in claims.from_templates(pod, template_of)
    ]
    if not statuses:
        return pod
    status = {**pod.get("status", {}), "resourceClaimStatuses": statuses}
    return world.api.update({**pod, "status": status})
