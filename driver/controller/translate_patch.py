"""How a translation changes a pod: the operations of a JSON patch on the raw object.

The raw object is patched, never written back whole, so that fields which this project does not
know survive. It knows where things are in a pod; it does not decide what is asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from driver.controller import translate
from driver.controller.translate import ResourceNames
from driver.model import names
from driver.wire.patch import Operation, add, pointer, remove

CONTAINER_LISTS = ("initContainers", "containers")
# HAMi's library reads the priority of a task from here.
_PRIORITY_VARIABLE = "CUDA_TASK_PRIORITY"
LABEL_VALUE = "true"


def containers(pod: Mapping[str, Any]) -> Iterable[tuple[str, int, Mapping[str, Any]]]:
    """Each container with the list that it is in and its place there, init containers first."""
    for part in CONTAINER_LISTS:
        for index, container in enumerate(pod["spec"].get(part) or ()):
            yield part, index, container


def translated(
    pod: Mapping[str, Any],
    resources: ResourceNames,
    *,
    only: frozenset[str],
    claim: str | None,
    request_of: Mapping[str, str],
) -> list[Operation]:
    """Take HAMi's resources from the containers in `only` and give them requests of `claim`.

    `request_of` maps a container to the request it uses; one that asks for no card has none.
    """
    operations: list[Operation] = []
    for part, index, container in containers(pod):
        name = container["name"]
        if name not in only:
            continue
        place = ("spec", part, index)
        operations += _without_resources(place, container, resources)
        if claim is not None and name in request_of:
            use = {"name": claim, "request": request_of[name]}
            asked = container["resources"]
            operations.append(appended((*place, "resources"), asked, "claims", use))
            operations += _priority(place, container, resources)
    return operations


def _without_resources(
    place: tuple[str | int, ...], container: Mapping[str, Any], resources: ResourceNames
) -> list[Operation]:
    return [
        remove(pointer(*place, "resources", kind, name))
        for kind, values in translate.removed(container, resources).items()
        for name in values
    ]


def _priority(
    place: tuple[str | int, ...], container: Mapping[str, Any], resources: ResourceNames
) -> list[Operation]:
    value = translate.priority(container, resources)
    if value is None:
        return []
    variable = {"name": _PRIORITY_VARIABLE, "value": str(value)}
    return [appended(place, container, "env", variable)]


def claimed(pod: Mapping[str, Any], claim: str, template: str) -> Operation:
    """Let the pod have a claim from a template."""
    entry = {"name": claim, "resourceClaimTemplateName": template}
    return appended(("spec",), pod["spec"], "resourceClaims", entry)


def claim_name(pod: Mapping[str, Any]) -> str:
    """A name that none of the pod's claims has."""
    taken = {entry.get("name") for entry in pod["spec"].get("resourceClaims") or ()}
    candidates = ("gpu", *(f"gpu-{number}" for number in range(1, len(taken) + 2)))
    return next(name for name in candidates if name not in taken)


def gated(pod: Mapping[str, Any]) -> list[Operation]:
    """Let the pod wait for its placement, once."""
    gates = pod["spec"].get("schedulingGates") or ()
    if any(gate.get("name") == names.PLACEMENT_GATE for gate in gates):
        return []
    return [appended(("spec",), pod["spec"], "schedulingGates", {"name": names.PLACEMENT_GATE})]


def labelled(pod: Mapping[str, Any]) -> list[Operation]:
    """Mark the pod as one of ours, once."""
    if (pod["metadata"].get("labels") or {}).get(names.POD_LABEL) == LABEL_VALUE:
        return []
    return merged(pod, "labels", {names.POD_LABEL: LABEL_VALUE})


def remembered(
    pod: Mapping[str, Any],
    resources: ResourceNames,
    *,
    only: frozenset[str],
    claim: str | None,
    request_of: Mapping[str, str],
) -> list[Operation]:
    """Annotations with what was taken out, and which request serves which resource now.

    What an earlier translation of the same pod noted (another webhook may have added a container
    since) stays.
    """
    annotations = pod["metadata"].get("annotations") or {}
    originals = _noted(annotations, names.ORIGINAL_RESOURCES, dict)
    mappings = _noted(annotations, names.EXTENDED_RESOURCES, list)
    for _, _, container in containers(pod):
        name = container["name"]
        if name not in only:
            continue
        originals[name] = translate.removed(container, resources)
        mappings += [
            {
                "containerName": name,
                "resourceName": resource,
                "claimName": claim,
                "requestName": request_of[name],
            }
            for resource in translate.present(container, resources)
            if name in request_of
        ]
    texts = {names.ORIGINAL_RESOURCES: _text(originals), names.EXTENDED_RESOURCES: _text(mappings)}
    return merged(pod, "annotations", texts)


def merged(pod: Mapping[str, Any], member: str, values: Mapping[str, str]) -> list[Operation]:
    """Set members of the pod's labels or annotations, which may not exist yet."""
    if not pod["metadata"].get(member):
        return [add(pointer("metadata", member), dict(values))]
    return [add(pointer("metadata", member, name), value) for name, value in values.items()]


def appended(
    place: Sequence[str | int], parent: Mapping[str, Any], member: str, item: Mapping[str, str]
) -> Operation:
    """Append to a list that may not exist yet."""
    if not parent.get(member):
        return add(pointer(*place, member), [item])
    return add(pointer(*place, member, "-"), item)


def _noted(annotations: Mapping[str, str], name: str, kind: type) -> Any:
    """What an earlier translation noted; somebody else's text in our annotation counts not."""
    try:
        return msgspec.json.decode(annotations.get(name, ""), type=kind)
    except msgspec.MsgspecError:
        return kind()


def _text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
