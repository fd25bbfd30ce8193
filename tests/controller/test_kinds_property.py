"""Nodes that share a verdict are told what each would be told alone, whatever they consist of."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from driver.controller.cluster import Cluster
from driver.controller.kinds import Kinds, Makes
from driver.controller.needs import needs
from driver.controller.policies import Defaults
from driver.controller.question import ask
from driver.controller.verdicts import Fits, Misfit, Verdicts
from driver.model.allocation import Features
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import convert
from tests.controller.commits import CLASS, DRIVER, Json, gpu, picked, proposed, request
from tests.controller.placements import add_claim, modes, pod

ALL = Features(**dict.fromkeys(Features.__struct_fields__, True))
NIC = "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
OURS = f"device.attributes['{DRIVER}']"


def select(expression: str) -> Json:
    """A selector of a request."""
    return {"selectors": [{"cel": {"expression": expression}}]}


def derived(expression: str) -> Json:
    """A request that computes the attribute `half`."""
    return {"derivedAttributes": [{"name": f"{DRIVER}/half", "expression": expression}]}


def match(attribute: str) -> Json:
    """All devices share a value."""
    return {"constraints": [{"matchAttribute": attribute}]}


ANY = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
# What pods ask: requests, and the rest of the claim.
ASKS: dict[str, tuple[list[Json], Json]] = {
    "whole": ([request()], {}),
    "share": ([request(mebi=300)], {}),
    "two linked": ([request(count=2)], match(f"{DRIVER}/nvlinkGroup")),
    "two of one speed": ([request(count=2)], match(f"{DRIVER}/speed")),
    "two apart": (
        [request(count=2)],
        {"constraints": [{"distinctAttribute": f"{DRIVER}/nvlinkGroup"}]},
    ),
    "model": ([request(**select(f"{OURS}.productName == 'H100'"))], {}),
    "reads everything": ([request(**select(f"size({OURS}) > 3"))], {}),
    "fails where nothing is said": ([request(**select(f"{OURS}.speed > 3"))], {}),
    "card and NIC on one root": (
        [request(), {"name": "nic", "exactly": ANY | select(f"device.driver == '{NIC}'")}],
        match(ROOT),
    ),
    "derived": ([request(count=2, **derived(f"{OURS}.index / 2"))], match(f"{DRIVER}/half")),
    "derived, may fail": ([request(count=2, **derived(f"{OURS}.speed"))], match(f"{DRIVER}/half")),
    "all": ([request(allocationMode="All", count=0)], {}),
    "tolerant": ([request(tolerations=[{"operator": "Exists"}])], {}),
    "alternatives": (
        [
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": "two", **ANY, "count": 2, **select(f"device.driver == '{DRIVER}'")},
                    {"name": "one", "deviceClassName": CLASS, "count": 1},
                ],
            }
        ],
        {},
    ),
}


@st.composite
def cards(draw: st.DrawFn) -> list[Json]:
    """Up to three cards of a node that may have more of one kind, parts of cards, or faults."""
    made = []
    for index in range(draw(st.integers(1, 3))):
        card = gpu(
            index,
            mebi=draw(st.sampled_from([0, 1000])),
            nvlinkGroup=draw(st.sampled_from(["x", "x", "y"])),
            productName=draw(st.sampled_from(["H100", "T4"])),
        )
        card["attributes"][ROOT] = {"string": f"pci{draw(st.integers(0, 1))}"}
        extra = draw(st.sampled_from([None] * 4 + ["speed", "taint", "counter"]))
        if extra == "speed":
            card["attributes"]["speed"] = {"int": draw(st.integers(3, 4))}
        elif extra == "taint":
            card["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        elif extra == "counter":
            drawn = {"slices": {"value": str(draw(st.integers(1, 2)))}}
            card["consumesCounters"] = [{"counterSet": "set", "counters": drawn}]
        made.append(card)
    return made


@st.composite
def machines(draw: st.DrawFn) -> Json:
    """One kind of node: its cards, the rest of its slices, and what the node says of itself."""
    return {
        "cards": draw(cards()),
        "nic": draw(st.sampled_from([None, None, "pci0", "pci1"])),
        "skip": draw(st.sampled_from([[], [], ["NodePrepareResources"]])),
        "declared": draw(st.sampled_from([[], ["DRAOptionalNodeOperations"]])),
        "counters": draw(st.integers(1, 3)),
        "slices": draw(st.sampled_from([2, 2, 2, 3])),
    }


@st.composite
def fleets(draw: st.DrawFn) -> list[Json]:
    """Up to three kinds of nodes, which may differ from the first in one thing only."""
    first = draw(machines())
    kinds = [first]
    for _ in range(draw(st.integers(0, 2))):
        other = draw(machines())
        one = draw(st.sampled_from(list(first)))
        kinds.append(draw(st.sampled_from([other, first | {one: other[one]}])))
    return kinds


def furnish(at: Cluster, name: str, machine: Json) -> None:
    """A node of this kind, on which everything has names of its own."""
    labels = {"kubernetes.io/hostname": name}
    status = {"declaredFeatures": machine["declared"]}
    at.put_node(convert(Node, {"metadata": {"name": name, "labels": labels}, "status": status}))
    devices = [
        card | {"attributes": card["attributes"] | {"uuid": {"string": f"{name}-{number}"}}}
        for number, card in enumerate(machine["cards"])
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": machine["slices"]}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool}
    value = {"slices": {"value": str(machine["counters"])}}
    parts: dict[str, Json] = {
        "cards": {"devices": devices, "skipNodeOperations": machine["skip"]},
        "counters": {"sharedCounters": [{"name": "set", "counters": value}]},
    }
    for part, more in parts.items():
        publish(at, f"{name}-{part}", spec | more)
    if machine["nic"]:
        nic = {"name": "eth0", "attributes": {ROOT: {"string": machine["nic"]}}}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        publish(
            at, f"{name}-nic", {"driver": NIC, "nodeName": name, "pool": pool, "devices": [nic]}
        )


def publish(at: Cluster, name: str, spec: Json) -> None:
    """A slice that the watch shows."""
    at.put_slice(convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec}))


def world(kinds: list[Json], used: list[tuple[int, int, int]]) -> Cluster:
    """Three nodes of each kind, with cards in use: (node, card, MiB or 0 for all of it)."""
    at = Cluster(driver=DRIVER, features=ALL, defaults=Defaults(node="compact", gpu="compact"))
    expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    for name, selectors in ((CLASS, [expression]), ("any", [])):
        document = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
        at.put_class(convert(DeviceClass, document))
    names = [f"n{number}" for number in range(3 * len(kinds))]
    for number, name in enumerate(names):
        furnish(at, name, kinds[number % len(kinds)])
    for number, (node, card, mebi) in enumerate(used):
        name = names[node % len(names)]
        free = add_claim(at, f"held-{number}", request(mebi=mebi))
        stored = proposed(free, picked(f"gpu-{card}", node=name, mebi=mebi), node=name)
        stored["metadata"] = stored["metadata"] | {"resourceVersion": "20"}
        at.put_claim(convert(ResourceClaim, stored), now=0.0)
    return at


def asking(at: Cluster, name: str, policies: tuple[str, str]) -> Pod:
    """A pod that asks for this."""
    requests, rest = ASKS[name]
    add_claim(at, name, *requests, **rest)
    return pod(name, name, annotations=modes(*policies))


def said(at: Cluster, of: Pod, makes: Makes) -> tuple[dict[str, Any], int]:
    """What each node says, and how many searches that took."""
    asked = ask(of, needs(of, at), at)
    assert asked is not None
    verdicts = Verdicts(asked.question, at, makes)
    assert verdicts.refresh()
    found: dict[str, Any] = {name: verdicts.of(name) for name in at.nodes}
    for name, verdict in found.items():
        if isinstance(verdict, Misfit):
            found[name] = verdict, verdicts.fits_when_empty(name)
    return found, verdicts.evaluations


@settings(max_examples=60, deadline=None)
@given(
    kinds=fleets(),
    used=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 2), st.sampled_from([0, 200, 900])), max_size=6
    ),
    policies=st.tuples(
        st.sampled_from(["compact", "spread", "topology", "fragmentation"]),
        st.sampled_from(["compact", "spread", "topology", "none"]),
    ),
)
def test_sharing_changes_no_verdict(
    kinds: list[Json], used: list[tuple[int, int, int]], policies: tuple[str, str]
) -> None:
    """Every question is put to all nodes twice: sharing what can be shared, and sharing nothing."""
    at, makes = world(kinds, used), Makes()
    for name in ASKS:
        of = asking(at, name, policies)
        shared, few = said(at, of, makes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kinds, "of", lambda *_, **__: None)
            alone, many = said(at, of, Makes())
        assert shared == alone, name
        assert few <= many
        event(f"{name}: {'fits' if any(isinstance(v, Fits) for v in alone.values()) else 'no'}")


def fast(*speeds: int) -> list[Json]:
    """Cards of these speeds."""
    return [gpu(index, speed=speed) for index, speed in enumerate(speeds)]


PLAIN = {"cards": [gpu(0)], "nic": None, "skip": [], "declared": [], "counters": 1, "slices": 2}
SKIPS = {"skip": ["NodePrepareResources"]}
TAINTED = gpu(0) | {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
DRAWS = gpu(0) | {
    "consumesCounters": [{"counterSet": "set", "counters": {"slices": {"value": "2"}}}]
}
ROOTED = gpu(0)
ROOTED["attributes"] |= {ROOT: {"string": "pci0"}}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        pytest.param("whole", SKIPS, {"declared": ["DRAOptionalNodeOperations"]}, id="the node"),
        pytest.param("whole", SKIPS, {"skip": []}, id="node operations"),
        pytest.param("whole", {}, {"cards": [TAINTED]}, id="taints"),
        pytest.param("whole", {"cards": [DRAWS]}, {"counters": 2}, id="counters"),
        pytest.param("whole", {}, {"slices": 3}, id="pools that are being written"),
        pytest.param(
            "two of one speed", {"cards": fast(3, 3)}, {"cards": fast(3, 4)}, id="attributes"
        ),
        pytest.param(
            "derived, may fail",
            {"cards": fast(3, 3)},
            {"cards": fast(3, 4)},
            id="derived attributes",
        ),
        pytest.param(
            "card and NIC on one root",
            {"cards": [ROOTED], "nic": "pci0"},
            {"nic": "pci1"},
            id="links",
        ),
    ],
)
def test_nodes_that_differ_in_one_thing_are_different(name: str, one: Json, other: Json) -> None:
    """On one kind of them the claims fit, on the other they do not."""
    at = world([PLAIN | one, PLAIN | one | other], [])
    found, _ = said(at, asking(at, name, ("compact", "compact")), Makes())
    fits = [isinstance(found[node], Fits) for node in ("n0", "n1")]
    assert sorted(fits) == [False, True]


def test_a_selector_that_fails_is_told_from_one_that_does_not_select() -> None:
    """Nodes with the same fault share its words, in which no node or device has a name."""
    at = world([PLAIN, PLAIN | {"cards": fast(3)}], [])
    of = asking(at, "fails where nothing is said", ("compact", "compact"))
    found, evaluations = said(at, of, Makes())
    reasons = {name: verdict[0].reason for name, verdict in found.items()}
    assert set(reasons.values()) == {reasons["n0"], reasons["n1"]}
    assert reasons["n0"] == (
        "allocation stops with an error: claim ns/fails where nothing is said: selector #0 on a "
        "device: CEL runtime error: no such key: speed"
    )
    assert reasons["n1"] != reasons["n0"]
    assert evaluations == 2


@pytest.mark.parametrize("link", ["nvlinkGroup", "pcieSwitch", ROOT, NUMA])
def test_links_of_any_sort_make_nodes_differ(link: str) -> None:
    """Two cards go well together on one kind of node, and less well on the other."""
    together, apart = [gpu(0), gpu(1)], [gpu(0), gpu(1)]
    for index in range(2):
        for card, where in ((together[index], 0), (apart[index], index)):
            value: Json = {"int": where} if link == NUMA else {"string": f"{where}"}
            card["attributes"] |= {link: value}
    at = world([PLAIN | {"cards": together}, PLAIN | {"cards": apart}], [])
    add_claim(at, "two", request(count=2))
    found, _ = said(at, pod("two", "two", annotations=modes("topology", "topology")), Makes())
    assert found["n0"] == found["n2"] != found["n1"] == found["n3"]


@pytest.mark.parametrize("name", ASKS)
def test_a_question_costs_as_many_searches_as_there_are_kinds(name: str) -> None:
    """Three nodes of each of two kinds: whatever is asked takes at most two searches."""
    machine = {"nic": "pci0", "skip": [], "declared": [], "counters": 3, "slices": 2}
    part = {"consumesCounters": [{"counterSet": "set", "counters": {"slices": {"value": "1"}}}]}
    root = {ROOT: {"string": "pci0"}}
    linked = [gpu(index, mebi=1000, nvlinkGroup="x", productName="H100") for index in range(2)]
    apart = [gpu(index, nvlinkGroup=f"{index}", productName="T4") | part for index in range(2)]
    for card in (*linked, *apart):
        card["attributes"] |= root
    at = world([machine | {"cards": linked}, machine | {"cards": apart}], [])
    verdicts, evaluations = said(at, asking(at, name, ("compact", "compact")), Makes())
    assert len(verdicts) == 6
    # Also those of empty nodes, because nothing is in use.
    assert evaluations <= 2
