"""Where objects have their pods: the kinds that are rewritten, and how a pod of each looks.

A pod is made as admission sees it, so that the same decision can be asked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]
Path = tuple[str, ...]

_TEMPLATE: Path = ("spec", "template")
_PLACES: Mapping[str, Path] = {
    "Pod": (),
    "Deployment": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


def place(kind: str) -> Path | None:
    """Where a kind has its pod template; None for one that has none, or is not known."""
    return _PLACES.get(kind)


def at(raw: Any, path: Path) -> Any:
    """What is at a path; an empty mapping where there is nothing."""
    for part in path:
        raw = raw.get(part) if isinstance(raw, Mapping) else None
    return raw if raw is not None else {}


def pod(raw: Raw, path: Path) -> dict[str, Any]:
    """The pod that an object leads to, as far as it is known before it is created."""
    template = at(raw, path)
    metadata = dict(template.get("metadata") or {})
    own = raw.get("metadata") or {}
    if path:
        metadata["generateName"] = f"{own.get('name', 'pod')}-"
        metadata["ownerReferences"] = [
            {"kind": raw.get("kind", ""), "name": own.get("name", ""), "controller": True}
        ]
    # A label that is a number in the manifest is refused by the API server, not by us.
    for member in ("labels", "annotations"):
        metadata[member] = {
            str(name): str(value) for name, value in (metadata.get(member) or {}).items()
        }
    metadata.pop("creationTimestamp", None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def mentions(raw: Any, names: Iterable[str], path: str = "") -> Iterator[str]:
    """Every place in an object that has a member of one of these names."""
    wanted = frozenset(names)
    if isinstance(raw, Mapping):
        for name, value in raw.items():
            here = f"{path}.{name}" if path else str(name)
            if name in wanted:
                yield here
            yield from mentions(value, wanted, here)
    elif isinstance(raw, list):
        for index, item in enumerate(raw):
            yield from mentions(item, wanted, f"{path}[{index}]")
