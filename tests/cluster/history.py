"""Was there ever a moment in which a device was given away twice?

Reads every version of every claim out of etcd, which keeps them all, and adds up what was allocated
after each change. It shares no code with what is tested. Needs a cluster with `--json-storage`.
"""

import base64
import json
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

Object = dict[str, Any]
Devices = dict[tuple[str, str], Object]

_CLAIMS = "/registry/resourceclaims/"
# Sorts after all claims and before anything else that the API server reads: seen by us alone.
_END = "/registry/resourceclaims0end"
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9}


class Judge:
    """Goes through the history once, as far as it has come, and goes on from there next time."""

    def __init__(self, etcd: str) -> None:
        self._etcd = etcd
        self._next = 1
        self._held: dict[str, list[Object]] = {}
        self.allocations = 0

    def wrongs(self, published: Devices) -> list[str]:
        """Every moment since last time in which a device was held twice or beyond its capacity."""
        found = []
        for revision, key, claim in changes(self._etcd, self._next):
            self._next = revision + 1
            before = self._held.get(key, [])
            self._held[key] = results(claim) if claim is not None else []
            if self._held[key] == before or not self._held[key]:
                continue
            self.allocations += 1
            touched = {_device(result) for result in self._held[key]}
            for device, reason in overused(self._held.values(), published).items():
                if device in touched:
                    found.append(f"revision {revision}, {key}: {'/'.join(device)} {reason}")
        return found


def changes(etcd: str, start: int) -> Iterator[tuple[int, str, Object | None]]:
    """Every change of a claim in etcd's order: revision, key, and the claim (None: deleted)."""
    put = _ask(f"{etcd}/v3/kv/put", {"key": _base64(_END), "value": ""})
    end = int(put["header"]["revision"])
    watch = {"key": _base64(_CLAIMS), "range_end": _base64(_END + "0"), "start_revision": start}
    body = json.dumps({"create_request": watch}).encode()
    with urllib.request.urlopen(f"{etcd}/v3/watch", data=body, timeout=60) as answer:
        for line in answer:
            for event in json.loads(line)["result"].get("events", []):
                if int(event["kv"]["mod_revision"]) >= end:
                    return
                if base64.b64decode(event["kv"]["key"]).decode() != _END:
                    yield _change(event)


def _change(event: Object) -> tuple[int, str, Object | None]:
    entry = event["kv"]
    key = base64.b64decode(entry["key"]).decode()
    gone = event.get("type") == "DELETE"
    claim = None if gone else json.loads(base64.b64decode(entry["value"]))
    return int(entry["mod_revision"]), key, claim


def _ask(url: str, body: Object) -> Object:
    with urllib.request.urlopen(url, data=json.dumps(body).encode(), timeout=30) as answer:
        found: Object = json.load(answer)
        return found


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def devices(slices: Iterable[Object]) -> Devices:
    """The published devices, by pool and name."""
    return {
        (part["spec"]["pool"]["name"], device["name"]): device
        for part in slices
        for device in part["spec"].get("devices", [])
    }


def results(claim: Object) -> list[Object]:
    """What is allocated to a claim."""
    devices = claim.get("status", {}).get("allocation", {}).get("devices", {})
    return [one for one in devices.get("results", []) if not one.get("adminAccess")]


def overused(allocations: Iterable[list[Object]], published: Devices) -> dict[tuple[str, str], str]:
    """The devices that are given away more than once or beyond their capacity, and how."""
    by_device: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for allocation in allocations:
        for result in allocation:
            by_device[_device(result)].append(result)
    reasons = {
        device: _overused(part, published.get(device, {})) for device, part in by_device.items()
    }
    found = {device: reason for device, reason in reasons.items() if reason is not None}
    return _overdrawn(by_device, published) | found


def _overdrawn(taken: Iterable[tuple[str, str]], published: Devices) -> dict[tuple[str, str], str]:
    """The devices that draw more from a counter than there is; a whole card draws all of it."""
    has: dict[tuple[str, ...], Decimal] = {}
    for device in published:
        for counter, amount in _draws(device, published):
            has[counter] = max(has.get(counter, amount), amount)
    drawn: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    by: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for device in taken:
        for counter, amount in _draws(device, published):
            drawn[counter] += amount
            by[counter].append(device)
    return {
        device: f"draws {'/'.join(counter)} with {by[counter]}: {drawn[counter]} of {has[counter]}"
        for counter in drawn
        if drawn[counter] > has[counter]
        for device in by[counter]
    }


def _draws(
    device: tuple[str, str], published: Devices
) -> Iterator[tuple[tuple[str, ...], Decimal]]:
    for draw in published.get(device, {}).get("consumesCounters", []):
        for name, counter in draw["counters"].items():
            yield (device[0], draw["counterSet"], name), amount_of(counter["value"])


def _overused(part: list[Object], device: Object) -> str | None:
    shares = [result for result in part if "shareID" in result]
    if len(part) > 1 and len(shares) < len(part):
        return f"held whole, and {len(part)} times"
    if len({result["shareID"] for result in shares}) < len(shares):
        return "has two shares with one ID"
    taken: Counter[str] = Counter()
    for result in shares:
        for name, amount in result.get("consumedCapacity", {}).items():
            taken[name] += amount_of(amount)  # type: ignore[assignment] # decimals add up as well
    for name, amount in taken.items():
        has = amount_of(device.get("capacity", {}).get(name, {}).get("value", "0"))
        if amount > has:
            return f"has {has} of {name}, and {amount} is taken"
    return None


def _device(result: Object) -> tuple[str, str]:
    return result["pool"], result["device"]


def amount_of(text: str) -> Decimal:
    """A quantity as the API writes it."""
    digits = text.rstrip("".join(set("".join(_UNITS))))
    return Decimal(digits) * _UNITS[text[len(digits) :]]
