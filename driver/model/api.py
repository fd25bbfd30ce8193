"""What every API object shares: the base of our structs, metadata, selectors of nodes."""

import msgspec


class ApiStruct(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """Base of all shapes of the API: frozen, camelCase on the wire, defaults left out.

    Fields that the struct does not name are dropped when decoding. Such an object is therefore
    never sent back whole: writes are patches (see `driver.wire`), and what must be understood
    completely before it is acted on is checked with `driver.wire.unknown`.
    """


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """The part of an object's metadata that this project reads."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One condition on a node's label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Conditions that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Toleration(ApiStruct, frozen=True, kw_only=True):
    """What taint is put up with. The same shape serves pods and device requests."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
