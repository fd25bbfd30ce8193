"""What the objects in a person's files are: checked as the API server would, and sorted by use."""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import msgspec

from driver.cli.simulation.documents import SNAPSHOT, Document
from driver.model.api import ApiStruct, ObjectMeta
from driver.model.core import Node, Pod, PodSpec
from driver.model.deviceclass import DeviceClass, DeviceTaintRule
from driver.model.errors import InvalidObjectError
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate
from driver.model.resourceslice import ResourceSlice
from driver.wire import decode
from driver.wire.unknown import unknown_in

T = TypeVar("T")
_Count = Annotated[int, msgspec.Meta(ge=0)]
INVENTORY = "Inventory"
INVENTORY_API = "quadrant.dev/v1alpha1"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
# msgspec puts the place of an error at the end of its text.
_PLACE = re.compile(r"(?P<problem>.*?)(?: - at `\$\.?(?P<field>[^`]*)`)?", re.ASCII | re.DOTALL)


class _PodTemplate(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec


class _Ordinals(ApiStruct, frozen=True, kw_only=True):
    start: _Count = 0


class _WorkloadSpec(ApiStruct, frozen=True, kw_only=True):
    template: _PodTemplate
    replicas: _Count = 1
    parallelism: _Count = 1
    completions: _Count | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    ordinals: _Ordinals = _Ordinals()


class _Workload(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: _WorkloadSpec


class _Namespace(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta


class _Kind(msgspec.Struct, frozen=True):
    """How a kind is read. Of one that is `closed`, every field is known here."""

    api_version: str
    shape: type
    namespaced: bool = True
    closed: bool = False


_RESOURCE = "resource.k8s.io/v1"
_KINDS = {
    "Pod": _Kind("v1", Pod),
    "Deployment": _Kind("apps/v1", _Workload),
    "ReplicaSet": _Kind("apps/v1", _Workload),
    "StatefulSet": _Kind("apps/v1", _Workload),
    "Job": _Kind("batch/v1", _Workload),
    "Namespace": _Kind("v1", _Namespace, namespaced=False),
    "Node": _Kind("v1", Node, namespaced=False),
    "ResourceSlice": _Kind(_RESOURCE, ResourceSlice, namespaced=False),
    "ResourceClaim": _Kind(_RESOURCE, ResourceClaim, closed=True),
    "ResourceClaimTemplate": _Kind(_RESOURCE, ResourceClaimTemplate, closed=True),
    "DeviceClass": _Kind(_RESOURCE, DeviceClass, namespaced=False, closed=True),
    "DeviceTaintRule": _Kind(_RESOURCE, DeviceTaintRule, namespaced=False, closed=True),
}
_WITH_PODS = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job")


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """All objects of the input by use, each list in the order of the input.

    `skipped` counts the objects that placement does not depend on, by kind.
    """

    workloads: tuple[Document, ...]
    claims: tuple[Document, ...]
    templates: tuple[Document, ...]
    classes: tuple[Document, ...]
    namespaces: tuple[Document, ...]
    taint_rules: tuple[Document, ...]
    inventories: tuple[Document, ...]
    nodes: tuple[Document, ...]
    slices: tuple[Document, ...]
    snapshots: tuple[Document, ...]
    skipped: dict[str, int]


def sort(documents: Iterable[Document]) -> Manifests:
    """Check and sort the objects; raises `ManifestError` for the first that is wrong."""
    kept: list[Document] = []
    skipped: dict[str, int] = {}
    for document in documents:
        if not document.kind:
            raise document.error("kind", "is missing; expected an object of Kubernetes")
        if document.kind == INVENTORY:
            check_api_version(document, INVENTORY_API)
            kept.append(document)
        elif document.kind == SNAPSHOT:
            kept.append(document)
        elif document.kind in _KINDS:
            kept.append(_checked(document))
        else:
            skipped[document.kind] = skipped.get(document.kind, 0) + 1
    _refuse_twins(kept)

    def of(*kinds: str) -> tuple[Document, ...]:
        return tuple(document for document in kept if document.kind in kinds)

    return Manifests(
        workloads=of(*_WITH_PODS),
        claims=of("ResourceClaim"),
        templates=of("ResourceClaimTemplate"),
        classes=of("DeviceClass"),
        namespaces=of("Namespace"),
        taint_rules=of("DeviceTaintRule"),
        inventories=of(INVENTORY),
        nodes=of("Node"),
        slices=of("ResourceSlice"),
        snapshots=of(SNAPSHOT),
        skipped=skipped,
    )


def check_api_version(document: Document, expected: str) -> None:
    """Raise `ManifestError` unless the document has this apiVersion."""
    found = document.raw.get("apiVersion")
    if found != expected:
        raise document.error("apiVersion", f"is {found!r}; expected {expected!r}")


def typed(document: Document, shape: type[T]) -> T:
    """The object as our data; raises `ManifestError` that names the field."""
    return reading(document, lambda: decode.convert(shape, document.raw))


def reading(document: Document, read: Callable[[], T]) -> T:
    """Call `read`; what is wrong with the object becomes a `ManifestError` about the document."""
    try:
        return read()
    except (InvalidObjectError, msgspec.MsgspecError) as error:
        match = _PLACE.fullmatch(str(error.__cause__ or error))
        field, problem = (match["field"], match["problem"]) if match else (None, str(error))
        raise document.error(field or "", problem.replace("`", "")) from error


def _checked(document: Document) -> Document:
    kind = _KINDS[document.kind]
    check_api_version(document, kind.api_version)
    metadata = document.raw.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise document.error("metadata.name", "is missing; expected the object's name")
    if not _NAME.fullmatch(metadata["name"]):
        raise document.error(
            "metadata.name",
            f"is {metadata['name']!r}; expected lower case letters, digits, '-' and '.'",
        )
    found: object = typed(document, kind.shape)
    if kind.closed and not document.exists:
        for path in unknown_in(kind.shape, document.raw):
            raise document.error(path.lstrip("."), f"is no field of {kind.api_version}")
    _check_pod(document, found)
    return _in_namespace(document) if kind.namespaced else document


def _check_pod(document: Document, found: object) -> None:
    """A misspelt field would leave a pod without containers, or an entry without a claim."""
    if isinstance(found, Pod):
        place, spec = "spec", found.spec
    elif isinstance(found, _Workload):
        place, spec = "spec.template.spec", found.spec.template.spec
    else:
        return
    if not spec.containers:
        raise document.error(f"{place}.containers", "is empty; expected at least one container")
    for index, entry in enumerate(spec.resource_claims):
        named = (entry.resource_claim_name, entry.resource_claim_template_name)
        if sum(name is not None for name in named) != 1:
            raise document.error(
                f"{place}.resourceClaims[{index}]",
                "leads to no claim, or to two; expected either resourceClaimName or "
                "resourceClaimTemplateName",
            )


def _in_namespace(document: Document) -> Document:
    metadata = {"namespace": "default", **document.raw["metadata"]}
    return Document(document.file, document.number, {**document.raw, "metadata": metadata})


def _refuse_twins(documents: Iterable[Document]) -> None:
    seen: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        metadata = document.raw.get("metadata") or {}
        key = (document.kind, metadata.get("namespace", ""), metadata.get("name", ""))
        if key[2] and key in seen:
            first = seen[key]
            raise document.error(
                "metadata.name",
                f"is the name of {first.file}, document {first.number} too; expected one object",
            )
        seen[key] = document
