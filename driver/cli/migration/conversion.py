"""One object rewritten: the translation of the admission webhook, put into a manifest.

What the webhook adds to a running pod by itself (gate, label, the memory of what was there) is left
out: it adds it to the rewritten pod, too. The template is the user's own: it has a name that says
whose it is, and nobody collects it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from driver.cli.migration import workloads
from driver.cli.migration.losses import losses
from driver.controller.cards import Card
from driver.controller.pods import Refused, ReviewContext, review_pod
from driver.controller.policies import Defaults
from driver.controller.translate import ResourceNames
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.errors import InvalidObjectError
from driver.model.resourceclaim import ResourceClaimTemplate
from driver.policy.registry import Registry
from driver.simulator.patching import patched
from driver.simulator.releases import Release
from driver.wire import encode

_CLAIMS = "resourceClaims"
_HAMI_SCHEDULER = "hami-scheduler"
# What is in the template now: selectors, constraints, policies.
_TRANSLATED = frozenset(
    {
        names.HAMI_USE_TYPE, names.HAMI_NO_TYPE, names.HAMI_USE_UUID, names.HAMI_NO_UUID,
        names.HAMI_NUMA_BIND, names.HAMI_MODE,
        names.HAMI_NODE_POLICY, names.HAMI_GPU_POLICY, names.HAMI_SCORING_WEIGHTS,
    }
)  # fmt: skip
# What HAMi's scheduler notes on pods that run.
_STATE = ("hami.io/vgpu-", "hami.io/bind-")
_MAX_NAME = 253


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the translation rests on besides the object."""

    release: Release
    registry: Registry
    device_class: str
    driver: str = names.DRIVER
    cards: frozenset[Card] = frozenset()
    resources: ResourceNames = ResourceNames()


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an object.

    Without a `template` the object is as it was; `refused` says why it cannot be rewritten, and
    `notes` what it does not keep.
    """

    raw: Mapping[str, Any]
    template: Mapping[str, Any] | None = None
    refused: str = ""
    notes: tuple[str, ...] = ()


def convert(raw: Mapping[str, Any], rules: Rules) -> Converted:
    """Rewrite one object; one that asks for no card is as it was."""
    path = workloads.place(str(raw.get("kind", "")))
    if path is None:
        return Converted(raw=raw, notes=tuple(_elsewhere(raw, rules.resources)))
    if not isinstance(workloads.at(raw, (*path, "spec")).get("containers"), list):
        return Converted(raw=raw, refused=f"{'.'.join((*path, 'spec'))}.containers is missing")
    pod = workloads.pod(raw, path)
    try:
        verdict = review_pod(pod, _context(raw, rules))
    except (InvalidObjectError, KeyError, TypeError, AttributeError) as error:
        return Converted(raw=raw, refused=f"the pod cannot be read: {error}")
    if isinstance(verdict, Refused):
        return Converted(raw=raw, refused=verdict.message.rstrip("."))
    if verdict.template is None:
        return Converted(raw=raw)
    name = _template_name(raw)
    # Patches of metadata and of the gate are for pods that are being created.
    operations = [one for one in verdict.operations if _is_about_containers(one["path"])]
    spec = _cleaned(patched(pod, operations)["spec"])
    for entry in spec.get(_CLAIMS) or ():
        if entry.get("resourceClaimTemplateName") == verdict.template.metadata.name:
            entry["resourceClaimTemplateName"] = name
    notes = (
        *verdict.warnings,
        *losses(pod, spec, rules.resources),
        *_misplaced(raw, path),
        *_quiet(raw),
    )
    return Converted(
        raw=_with_pod(raw, path, spec),
        template=_template(verdict.template, raw, name),
        notes=notes,
    )


def _context(raw: Mapping[str, Any], rules: Rules) -> ReviewContext:
    namespace = (raw.get("metadata") or {}).get("namespace", "default")
    return ReviewContext(
        namespace=ObjectMeta(name=namespace),
        defaults=Defaults(node="compact", gpu="compact"),
        features=rules.release.features,
        cards=rules.cards,
        # So that a plain number of cards becomes a claim, too.
        extended_resources_served=False,
        resources=rules.resources,
        driver=rules.driver,
        device_class=rules.device_class,
        registry=rules.registry,
    )


def _is_about_containers(path: str) -> bool:
    return path.startswith(("/spec/containers", "/spec/initContainers", f"/spec/{_CLAIMS}"))


def _cleaned(spec: dict[str, Any]) -> dict[str, Any]:
    """Without empty lists of resources, and without the scheduler of HAMi."""
    for part in ("initContainers", "containers"):
        for container in spec.get(part) or ():
            resources = container.get("resources") or {}
            for kind in ("limits", "requests"):
                if kind in resources and not resources[kind]:
                    del resources[kind]
            if "resources" in container and not resources:
                del container["resources"]
    if spec.get("schedulerName") == _HAMI_SCHEDULER:
        del spec["schedulerName"]
    return spec


def _with_pod(
    raw: Mapping[str, Any], path: workloads.Path, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """A copy of the object with another pod spec, and without the annotations that are claims."""
    made = {**raw}
    holder = made
    for part in path:
        holder[part] = {**holder[part]}
        holder = holder[part]
    holder["spec"] = spec
    metadata = holder.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    kept = {name: value for name, value in annotations.items() if not _goes(name)}
    if kept != annotations:
        metadata = {**metadata, "annotations": kept}
        if not kept:
            del metadata["annotations"]
        holder["metadata"] = metadata
        if not metadata:
            del holder["metadata"]
    return made


def _goes(annotation: str) -> bool:
    return annotation in _TRANSLATED or annotation.startswith(_STATE)


def _template(found: ResourceClaimTemplate, raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    namespace = (raw.get("metadata") or {}).get("namespace")
    made = encode.builtins(found.spec)
    if not made.get("metadata"):
        made.pop("metadata", None)
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": made,
    }


def _template_name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata") or {}
    name = str(metadata.get("name") or str(metadata.get("generateName", "pod")).rstrip("-"))
    return f"{name[: _MAX_NAME - len('-gpu')]}-gpu"


def _misplaced(raw: Mapping[str, Any], path: workloads.Path) -> Iterable[str]:
    """Annotations that people put on the workload, where nobody reads them."""
    own = (raw.get("metadata") or {}).get("annotations") or {}
    if path:
        for name in own:
            if name in _TRANSLATED:
                place = ".".join((*path, "metadata", "annotations"))
                yield f"annotation {name} of the object itself says nothing: it belongs to {place}"


def _quiet(raw: Mapping[str, Any]) -> Iterable[str]:
    if raw.get("kind") == "DaemonSet":
        yield "pods of a DaemonSet have their node already: only the GPU axis is left to policies"


def _elsewhere(raw: Mapping[str, Any], resources: ResourceNames) -> Iterable[str]:
    """Objects that are not rewritten though they speak of cards."""
    quota = tuple(f"requests.{name}" for name in resources.all())
    if raw.get("kind") == "ResourceQuota":
        for found in workloads.mentions(raw.get("spec"), quota, "spec"):
            yield (
                f"{found} does not count claims: use "
                f"{names.DRIVER}.deviceclass.resource.k8s.io/devices"
            )
        return
    places = list(workloads.mentions(raw, resources.all()))
    if places:
        yield (
            f"objects of kind {raw.get('kind')} are not rewritten, though {places[0]} asks for "
            "cards; the admission webhook still translates its pods as they are created"
        )
