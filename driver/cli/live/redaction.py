"""A snapshot without the names that people gave, in which all still fits together.

Replaced, each by the same word everywhere: names of nodes, namespaces, pods, claims, templates,
taint rules, slices, pools and containers; UIDs and serial numbers of cards; keys and values of
labels outside Kubernetes' own domains; values of taints. Numbers count in the order of the old
names, because ties end on names. Dropped: configuration of devices, apart from policies. Kept, for
placement rests on it: names and properties of devices, classes, requests, selectors, taint keys,
resource names, amounts, policies. Look through these before you hand the file out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from driver.model import names
from driver.model.gpuconfig import POLICY_KIND
from driver.simulator import identity

Raw = dict[str, Any]
_PUBLIC_DOMAINS = ("kubernetes.io", "k8s.io", names.DOMAIN, "nvidia.com", "hami.io")
# Values that say nothing of who owns the cluster, and that selectors may compare as numbers.
_PLAIN = re.compile(r"true|false|[0-9]*", re.ASCII)
_KEPT_ANNOTATIONS = frozenset(
    {
        names.NODE_POLICY,
        names.GPU_POLICY,
        names.SCORING_WEIGHTS,
        names.HAMI_NODE_POLICY,
        names.HAMI_GPU_POLICY,
        names.HAMI_SCORING_WEIGHTS,
        names.EXTENDED_CLAIM,
        names.POD_CLAIM_NAME,
    }
)


class _Words:
    """New words for old ones of one sort; sorted ones first, then as they come."""

    def __init__(self, sort: str, known: Iterable[str] = ()) -> None:
        self._sort = sort
        found = sorted(set(known))
        self._width = max(3, len(str(len(found))))
        self._new: dict[str, str] = {}
        for word in found:
            self(word)

    def __call__(self, word: str) -> str:
        if not word:
            return word
        number = f"{len(self._new) + 1:0{self._width}}"
        return self._new.setdefault(word, f"{self._sort}-{number}")

    def __contains__(self, word: str) -> bool:
        return word in self._new

    def items(self) -> Iterable[tuple[str, str]]:
        return self._new.items()


class Redaction:
    """Redacts all items of a snapshot together."""

    def __init__(self, items: list[Raw]) -> None:
        self._items = items
        self._node = _Words("node", _names(items, "Node"))
        self._namespace = _Words("namespace", _names(items, "Namespace"))
        self._of_kind = {
            kind: _Words(sort, _names(items, kind))
            for kind, sort in (
                ("Pod", "pod"),
                ("ResourceClaim", "claim"),
                ("ResourceClaimTemplate", "template"),
                ("ResourceSlice", "slice"),
                ("DeviceTaintRule", "rule"),
            )
        }
        self._pool = _Words("pool")
        self._owner = _Words("owner")
        self._container = _Words("container")
        self._label = _Words("label")
        self._value = _Words("value")
        self._serial = _Words("GPU", _serials(items))

    def all(self) -> list[Raw]:
        """The items, redacted."""
        by_kind: dict[str, Callable[[Raw], Raw]] = {
            "Node": self._a_node,
            "ResourceSlice": self._slice,
            "ResourceClaim": self._claim,
            "ResourceClaimTemplate": self._template,
            "DeviceClass": self._class,
            "DeviceTaintRule": self._rule,
            "Pod": self._pod,
        }
        return [
            by_kind.get(item["kind"], dict)({**item, "metadata": self._metadata(item)})
            for item in self._items
        ]

    # Kinds

    def _a_node(self, item: Raw) -> Raw:
        spec = item.get("spec") or {}
        return item | {"spec": spec | {"taints": [self._taint(one) for one in _in(spec, "taints")]}}

    def _slice(self, item: Raw) -> Raw:
        spec = dict(item["spec"])
        pool = spec["pool"]
        spec["pool"] = pool | {"name": self._pool_name(pool["name"])}
        spec["devices"] = [self._device(one) for one in _in(spec, "devices")]
        return item | {"spec": self._on_nodes(spec)}

    def _device(self, device: Raw) -> Raw:
        attributes = dict(device.get("attributes") or {})
        for name in filter(_is_serial, attributes):
            attributes[name] = {"string": self._serial(attributes[name].get("string", ""))}
        return self._on_nodes(device | {"attributes": attributes})

    def _claim(self, item: Raw) -> Raw:
        made = item | {"spec": self._devices(item.get("spec") or {})}
        status = item.get("status") or {}
        if status:
            allocation = status.get("allocation")
            made["status"] = {
                "reservedFor": [self._user(one) for one in _in(status, "reservedFor")],
                **({"allocation": self._allocation(allocation)} if allocation else {}),
            }
        return made

    def _template(self, item: Raw) -> Raw:
        spec = item["spec"]
        inner = {"metadata": self._labelled(spec.get("metadata") or {})}
        return item | {"spec": inner | {"spec": self._devices(spec.get("spec") or {})}}

    def _class(self, item: Raw) -> Raw:
        spec = self._selectors(item.get("spec") or {})
        return item | {"spec": spec | {"config": list(_policies(spec))}}

    def _rule(self, item: Raw) -> Raw:
        spec = dict(item["spec"])
        spec["taint"] = self._taint(spec["taint"])
        selector = spec.get("deviceSelector")
        if selector and selector.get("pool"):
            spec["deviceSelector"] = selector | {"pool": self._pool_name(selector["pool"])}
        return item | {"spec": spec}

    def _pod(self, item: Raw) -> Raw:
        spec, status = dict(item["spec"]), dict(item.get("status") or {})
        for holder, field in ((spec, "nodeName"), (status, "nominatedNodeName")):
            if holder.get(field):
                holder[field] = self._node(holder[field])
        spec["nodeSelector"] = self._labels(spec.get("nodeSelector") or {})
        spec["tolerations"] = [self._toleration(one) for one in _in(spec, "tolerations")]
        for part in ("containers", "initContainers"):
            spec[part] = [one | {"name": self._container(one["name"])} for one in _in(spec, part)]
        spec["resourceClaims"] = [self._entry(one) for one in _in(spec, "resourceClaims")]
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        for field, selector in affinity.items():
            spec["affinity"] = {"nodeAffinity": {field: self._node_selector(selector)}}
        # What the scheduler wrote names nodes in plain text.
        status.pop("conditions", None)
        return item | {"spec": spec, "status": self._made_claims(status)}

    # Parts

    def _metadata(self, item: Raw) -> Raw:
        metadata = self._labelled(item["metadata"])
        name = metadata["name"]
        if item["kind"] == "Node":
            metadata["name"] = self._node(name)
        elif item["kind"] == "Namespace":
            metadata["name"] = self._namespace(name)
        elif item["kind"] in self._of_kind:
            metadata["name"] = self._of_kind[item["kind"]](name)
        return metadata

    def _labelled(self, found: Raw) -> Raw:
        """Metadata but for the object's own name."""
        metadata = {name: value for name, value in found.items() if name != "generateName"}
        for field, new in (("namespace", self._namespace), ("uid", _uid)):
            if metadata.get(field):
                metadata[field] = new(metadata[field])
        metadata["labels"] = self._labels(metadata.get("labels") or {})
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {
            name: value for name, value in annotations.items() if name in _KEPT_ANNOTATIONS
        }
        owners = _in(metadata, "ownerReferences")
        metadata["ownerReferences"] = [self._an_owner(owner) for owner in owners]
        return metadata

    def _an_owner(self, owner: Raw) -> Raw:
        new = self._node if owner["kind"] == "Node" else self._of_kind.get(owner["kind"])
        return owner | {"name": (new or self._owner)(owner["name"]), "uid": _uid(owner["uid"])}

    def _user(self, user: Raw) -> Raw:
        new = self._of_kind["Pod"] if user.get("resource") == "pods" else self._owner
        return user | {"name": new(user["name"]), "uid": _uid(user["uid"])}

    def _entry(self, entry: Raw) -> Raw:
        made = dict(entry)
        for field, kind in (
            ("resourceClaimName", "ResourceClaim"),
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
        ):
            if made.get(field):
                made[field] = self._of_kind[kind](made[field])
        return made

    def _made_claims(self, status: Raw) -> Raw:
        made = dict(status)
        if "resourceClaimStatuses" in made:
            made["resourceClaimStatuses"] = list(map(self._entry, made["resourceClaimStatuses"]))
        special = made.get("extendedResourceClaimStatus")
        if special:
            made["extendedResourceClaimStatus"] = self._entry(special) | {"requestMappings": []}
        return made

    def _allocation(self, allocation: Raw) -> Raw:
        results = [
            one | {"pool": self._pool_name(one["pool"])}
            for one in _in(allocation.get("devices") or {}, "results")
        ]
        made = {"devices": {"results": results}}
        selector = allocation.get("nodeSelector")
        return made | ({"nodeSelector": self._node_selector(selector)} if selector else {})

    def _devices(self, spec: Raw) -> Raw:
        devices = dict(spec.get("devices") or {})
        devices.pop("config", None)
        devices["requests"] = [self._request(one) for one in _in(devices, "requests")]
        return {"devices": devices}

    def _request(self, request: Raw) -> Raw:
        made = dict(request)
        if "exactly" in made:
            made["exactly"] = self._selectors(made["exactly"])
        if "firstAvailable" in made:
            made["firstAvailable"] = list(map(self._selectors, made["firstAvailable"]))
        return made

    def _selectors(self, holder: Raw) -> Raw:
        """Expressions with the new serial numbers, tolerations with the new values."""
        made = dict(holder)
        if "tolerations" in made:
            made["tolerations"] = list(map(self._toleration, made["tolerations"]))
        if "selectors" in made:
            made["selectors"] = [
                {"cel": {"expression": self._expression(one["cel"]["expression"])}}
                for one in made["selectors"]
                if "cel" in one
            ]
        return made

    def _expression(self, expression: str) -> str:
        for old, new in self._serial.items():
            expression = expression.replace(old, new)
        return expression

    def _pool_name(self, pool: str) -> str:
        """A pool of a node's own devices has the node's name."""
        return self._node(pool) if pool in self._node else self._pool(pool)

    def _on_nodes(self, holder: Raw) -> Raw:
        made = dict(holder)
        if made.get("nodeName"):
            made["nodeName"] = self._node(made["nodeName"])
        if made.get("nodeSelector"):
            made["nodeSelector"] = self._node_selector(made["nodeSelector"])
        if "taints" in made:
            made["taints"] = [self._taint(one) for one in made["taints"]]
        return made

    def _node_selector(self, selector: Raw) -> Raw:
        terms = [
            {part: list(map(self._condition, conditions)) for part, conditions in term.items()}
            for term in selector["nodeSelectorTerms"]
        ]
        return {"nodeSelectorTerms": terms}

    def _condition(self, one: Raw) -> Raw:
        values = [self._label_value(value) for value in one.get("values") or ()]
        return one | {"key": self._key(one["key"]), "values": values}

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self._key(name): self._label_value(value) for name, value in labels.items()}

    def _key(self, key: str) -> str:
        domain, slash, _ = key.partition("/")
        public = key.startswith("metadata.") or (slash and _is_public(domain))
        return key if public else self._label(key)

    def _label_value(self, value: str) -> str:
        if value in self._node:
            return self._node(value)
        return value if _PLAIN.fullmatch(value) else self._value(value)

    def _taint(self, taint: Raw) -> Raw:
        return taint | {"value": self._label_value(taint.get("value") or "")}

    def _toleration(self, toleration: Raw) -> Raw:
        return toleration | {"value": self._label_value(toleration.get("value") or "")}


def _uid(old: str) -> str:
    return identity.uid(f"redacted/{old}") if old else old


def _names(items: list[Raw], kind: str) -> Iterator[str]:
    return (item["metadata"]["name"] for item in items if item["kind"] == kind)


def _serials(items: list[Raw]) -> Iterator[str]:
    for item in items:
        if item["kind"] == "ResourceSlice":
            for device in _in(item["spec"], "devices"):
                for name, value in (device.get("attributes") or {}).items():
                    if _is_serial(name) and value.get("string"):
                        yield value["string"]


def _is_public(domain: str) -> bool:
    """One of the public domains or below it; `acme-k8s.io` is somebody's own."""
    return any(domain == public or domain.endswith(f".{public}") for public in _PUBLIC_DOMAINS)


def _is_serial(attribute: str) -> bool:
    return attribute.rsplit("/", 1)[-1] == names.UUID


def _policies(spec: Raw) -> Iterator[Raw]:
    for entry in _in(spec, "config"):
        parameters = (entry.get("opaque") or {}).get("parameters") or {}
        if isinstance(parameters, dict) and parameters.get("kind") == POLICY_KIND:
            yield entry


def _in(holder: Mapping[str, Any], field: str) -> list[Raw]:
    return list(holder.get(field) or ())
