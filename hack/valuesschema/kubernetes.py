"""Values that Kubernetes has a form for: the chart hands them on as they are.

Checked as far as a misspelt name would be lost in silence; the API server checks the rest.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Labels = dict[str, str]
Quantities = dict[str, str | float]


class _Closed(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An object that has the fields it names, and no others."""


class Resources(_Closed, frozen=True):
    """What a container asks for."""

    requests: Quantities | UnsetType = UNSET
    limits: Quantities | UnsetType = UNSET


class Toleration(_Closed, frozen=True):
    """A taint that pods put up with."""

    key: str | UnsetType = UNSET
    operator: Literal["Exists", "Equal", "Lt", "Gt"] | UnsetType = UNSET
    value: str | UnsetType = UNSET
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | UnsetType = UNSET
    toleration_seconds: int | UnsetType = UNSET


class Affinity(_Closed, frozen=True):
    """Where pods are drawn to; too deep to be told again here."""

    node_affinity: dict[str, Any] | UnsetType = UNSET
    pod_affinity: dict[str, Any] | UnsetType = UNSET
    pod_anti_affinity: dict[str, Any] | UnsetType = UNSET


class Requirement(_Closed, frozen=True):
    """One expression of a selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | UnsetType = UNSET


class Selector(_Closed, frozen=True):
    """Objects by their labels."""

    match_labels: Labels | UnsetType = UNSET
    match_expressions: list[Requirement] | UnsetType = UNSET


class IpBlock(_Closed, frozen=True):
    """Addresses."""

    cidr: str
    excepted: list[str] | UnsetType = field(name="except", default=UNSET)


class Peer(_Closed, frozen=True):
    """Who may come through a NetworkPolicy."""

    namespace_selector: Selector | UnsetType = UNSET
    pod_selector: Selector | UnsetType = UNSET
    ip_block: IpBlock | UnsetType = UNSET


# The API server would refuse an empty one, when half of the chart is installed.
Peers = list[Annotated[Peer, Meta(extra_json_schema={"minProperties": 1})]]
