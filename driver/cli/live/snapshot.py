"""A listing as one document, which `quadrant simulate` takes as its input.

It holds what placement depends on and nothing else: no images, no environment, no secrets. Objects
look as the API server shows them, in a list that says which features the cluster serves.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from driver.cli.live.listing import Listing
from driver.cli.live.redaction import Redaction
from driver.cli.simulation.documents import SNAPSHOT
from driver.cli.simulation.snapshot import API_VERSION
from driver.controller.podqueue import turn
from driver.model import names
from driver.model.api import ObjectMeta
from driver.wire.encode import builtins

Raw = dict[str, Any]
_RESOURCE = "resource.k8s.io/v1"


def document(listing: Listing, *, redact: bool) -> Raw:
    """The snapshot; redacted, without any name that people gave to nodes, pods and the like."""
    items = list(_items(listing))
    served = listing.served
    return {
        "apiVersion": API_VERSION,
        "kind": SNAPSHOT,
        "kubernetes": served.version,
        "features": msgspec.to_builtins(served.features),
        "extendedResources": served.extended_resources,
        "redacted": redact,
        "items": Redaction(items).all() if redact else items,
    }


def _items(listing: Listing) -> Iterator[Raw]:
    """In an order in which each finds what it refers to."""
    waiting_last = sorted(listing.pods, key=lambda pod: (not pod.spec.node_name, turn(pod)))
    pods = [pod for pod in waiting_last if not pod.finished]
    used = {pod.metadata.namespace for pod in pods}
    used |= {claim.metadata.namespace for claim in listing.claims}
    spaces = [one for one in listing.namespaces if one.metadata.name in used]
    for api_version, kind, objects in (
        ("v1", "Node", listing.nodes),
        ("v1", "Namespace", spaces),
        (_RESOURCE, "ResourceSlice", listing.slices),
        (_RESOURCE, "DeviceClass", listing.classes),
        (_RESOURCE, "DeviceTaintRule", listing.taint_rules),
        (_RESOURCE, "ResourceClaimTemplate", listing.templates),
        (_RESOURCE, "ResourceClaim", listing.claims),
        ("v1", "Pod", pods),
    ):
        yield from _raw(api_version, kind, objects)


def _raw(api_version: str, kind: str, objects: Iterable[object]) -> Iterator[Raw]:
    for one in objects:
        yield {"apiVersion": api_version, "kind": kind, **builtins(_without_noise(one))}


def _without_noise(one: Any) -> Any:
    """Without the annotations that tools leave behind: they repeat the object, or more."""
    metadata: ObjectMeta = one.metadata
    kept = {
        name: value
        for name, value in metadata.annotations.items()
        if f"{names.DOMAIN}/" in name or name.startswith(("hami.io/", "resource.kubernetes.io/"))
    }
    return msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(metadata, annotations=kept, finalizers=())
    )
