"""`matrix`, `claims` and `topo` against a cluster behind real HTTP."""

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from driver.cli.asking import seconds
from driver.cli.fleet.events import read
from driver.cli.fleet.report import Given
from driver.cli.render.claims import age, devices
from driver.cli.usage import UsageError
from driver.kube.errors import KubeError
from tests.cli.livecluster import EVENTS, LiveCluster
from tests.controller.commits import Json, gpu, picked


def card(index: int, *, group: str = "", numa: int | None = None, **more: Any) -> Json:
    """A shareable card of 80 GiB."""
    facts: dict[str, Any] = {"productName": "H100", **({"nvlinkGroup": group} if group else {})}
    made = gpu(index, mebi=81920, **facts, **more)
    if numa is not None:
        made["attributes"]["resource.kubernetes.io/numaNode"] = {"int": numa}
    return made


def instance(parent: int, number: int, profile: str) -> Json:
    """A part of a card."""
    texts = {"type": "mig", "parentUUID": f"GPU-{parent}", "profile": profile}
    attributes: Json = {name: {"string": value} for name, value in texts.items()}
    return {
        "name": f"gpu-{parent}-mig-{number}",
        "attributes": attributes | {"index": {"int": parent}},
        "capacity": {"memory": {"value": "10Gi"}},
    }


def two_nodes(live: LiveCluster) -> None:
    """Four cards in two NVLink groups, and two cards on two NUMA nodes, one of them tainted."""
    taint = {"key": "gpu.quadrant.dev/unhealthy", "effect": "NoSchedule"}
    live.node("a", [card(n, group=str(n // 2)) for n in range(4)], labels={"zone": "x"})
    live.node("b", [card(0, numa=0), card(1, numa=1) | {"taints": [taint]}], labels={"zone": "y"})
    live.claim("whole", picked("gpu-0"), pod="runs")
    live.claim("part", picked("gpu-1", mebi=8192))
    live.claim("other", picked("gpu-1", mebi=8192))
    live.pod("runs", node="a")
    live.pod("nominated", nominated="b")
    live.pod("gated", gated=True)


async def test_the_picture(live: LiveCluster) -> None:
    """Every state, both borders, the numbers, the legend and the total."""
    two_nodes(live)
    done = await live.run("matrix")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NODE", "GPU", "FREE", "LARGEST", "FRAG", "PENDING"]
    assert lines[1].split() == ["a", "██", "▒2", "│", "··", "··", "2/4", "2", "29%", "0"]
    assert lines[2].split() == ["b", "··", "╎", "·x", "1/2", "1", "0%", "1"]
    assert lines[3].split() == ["total", "2", "nodes", "3/6", "2", "17%", "1"]
    assert "6 cards on 2 nodes: 3 free, 2 in use, 1 closed; 2 pods wait" in lines[4]
    legend = "\n".join(lines[5:])
    for sign in ("·· free", "▒2 shared", "██ one claim", "x tainted", "│ another", "╎ another"):
        assert sign in legend
    assert "FREE" in legend
    assert "PENDING" in legend


async def test_ascii_and_pipes_have_no_escapes(live: LiveCluster) -> None:
    """`--ascii` needs no other sign, and nothing is coloured where it is not wanted."""
    two_nodes(live)
    done = await live.run("matrix", "--ascii")
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout


async def test_mig_is_one_card(live: LiveCluster) -> None:
    """Instances in use are counted on their card; a card with nothing else is not free."""
    parts = [instance(0, number, "1g.10gb") for number in range(3)]
    live.node("a", [card(0), *parts, *(instance(1, number, "1g.10gb") for number in range(2))])
    live.claim("one", picked("gpu-0-mig-0"))
    live.claim("two", picked("gpu-0-mig-2"))
    found = json.loads((await live.run("matrix", "-o", "json")).stdout)
    first, second = found["nodes"][0]["cards"]
    assert (first["use"], first["migInUse"]) == ("mig", ["1g.10gb", "1g.10gb"])
    assert first["memoryUsedMiB"] == 20480
    assert first["claims"] == ["ns/one", "ns/two"]
    assert (second["use"], second["uuid"], second["index"]) == ("mig", "GPU-1", 1)
    committed = {one["model"]: one["committed"] for one in found["total"].pop("capacity")}
    assert committed == {"H100": 1, "": 0}
    assert found["total"] | {"fragmentation": 0} == {
        "nodes": 1, "cards": 2, "free": 0, "inUse": 1, "tainted": 0, "largestFree": 0,
        "fragmentation": 0, "gated": 0, "nominated": 0, "waiting": 0,
    }  # fmt: skip
    shown = (await live.run("matrix")).stdout
    assert re.search(r"^a +▚2 ▚0 ", shown, re.MULTILINE)
    assert "▚2 divided (MIG)" in shown
    claims = (await live.run("claims")).stdout
    assert "0:1g.10gb" in claims


async def test_who_only_looks_holds_nothing(live: LiveCluster) -> None:
    """Admin access uses nothing of a card; the claim shows the card all the same."""
    live.node("a", [card(0)])
    live.claim("monitor", picked("gpu-0") | {"adminAccess": True})
    found = json.loads((await live.run("matrix", "-o", "json")).stdout)
    assert (found["nodes"][0]["cards"][0]["use"], found["total"]["free"]) == ("free", 1)
    (claim,) = json.loads((await live.run("claims", "-o", "json")).stdout)["claims"]
    assert [(one["device"], one["adminAccess"]) for one in claim["devices"]] == [("gpu-0", True)]


async def test_many_equal_nodes_are_folded_except_when_wide(live: LiveCluster) -> None:
    """Above forty nodes those that look the same are one row; wide shows each."""
    for number in range(41):
        live.node(f"n{number:02}", [card(0)])
    live.claim("one", picked("gpu-0", node="n05"))
    lines = (await live.run("matrix")).stdout.splitlines()
    assert lines[1].split()[0] == "n00"
    assert lines[1].endswith("40 nodes like this")
    assert lines[2].split()[0] == "n05"
    assert lines[3].split()[0] == "total"
    wide = (await live.run("matrix", "-o", "wide")).stdout
    assert "n40" in wide
    assert "80.0 of 80.0 GiB" in wide


async def test_capacity_by_model_when_wide(live: LiveCluster) -> None:
    """What there is, what can be given, what is given; what is free, and how much of it whole."""
    two_nodes(live)
    lines = (await live.run("matrix", "-o", "wide")).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("CAPACITY"))
    assert lines[at + 1].split() == [
        *("H100", "6", "5", "2", "2"),
        *("96.0", "of", "480.0", "GiB", "304.0", "GiB", "240.0", "GiB"),
    ]
    assert "CAPACITY" not in (await live.run("matrix")).stdout


async def test_groups_and_selectors(live: LiveCluster) -> None:
    """A heading with sums for each value of a label; -l asks the API server for fewer nodes."""
    two_nodes(live)
    live.node("c", [card(0)])
    lines = (await live.run("matrix", "--group-by", "zone")).stdout.splitlines()
    heads = [line.split()[0] for line in lines[1:7]]
    assert heads == ["zone", "c", "zone=x", "a", "zone=y", "b"]
    assert lines[1].startswith("zone is not set")
    only = json.loads((await live.run("matrix", "-l", "zone=x", "-o", "json")).stdout)
    assert [node["node"] for node in only["nodes"]] == ["a"]


async def test_an_incomplete_pool_is_told(live: LiveCluster) -> None:
    """Not an empty row without a word."""
    live.node("a", [card(0)])
    item = live.server.get("/apis/resource.k8s.io/v1/resourceslices", "a-slice")
    pool = item["spec"]["pool"] | {"resourceSliceCount": 2}
    live.server.put(
        "/apis/resource.k8s.io/v1/resourceslices", item | {"spec": item["spec"] | {"pool": pool}}
    )
    assert "pool a: some of its slices are missing" in (await live.run("matrix")).stdout


async def test_no_cards(live: LiveCluster) -> None:
    """A cluster without the driver is told as such."""
    assert "no node has cards of gpu.quadrant.dev" in (await live.run("matrix")).stdout


async def test_claims(live: LiveCluster) -> None:
    """Every column, with the score and policy that the controller told in an event."""
    two_nodes(live)
    uid = live.server.get("/apis/resource.k8s.io/v1/resourceclaims", "whole", "ns")["metadata"]
    live.server.put(
        EVENTS,
        {
            "metadata": {"name": "e", "namespace": "ns"},
            "reason": "DevicesChosen",
            "message": "a/gpu-0 by topology, score 12.5 (links 12.5); next a/gpu-2, 1 behind",
            "involvedObject": {"kind": "ResourceClaim", "uid": uid["uid"]},
        },
    )
    live.claim("wants", annotations={"quadrant.dev/node-policy": "spread"})
    lines = (await live.run("claims")).stdout.splitlines()
    assert lines[0].split() == [
        "NAME", "CLASS", "STATE", "NODE", "DEVICES", "SCORE", "POLICY", "POD", "AGE",
    ]  # fmt: skip
    rows = {line.split()[0]: line.split() for line in lines[1:]}
    assert rows["whole"][1:8] == [
        "gpu.quadrant.dev", "allocated,reserved", "a", "0", "12.50", "default/topology", "runs",
    ]  # fmt: skip
    assert rows["part"][2:7] == ["allocated", "a", "1", "-", "default/default"]
    assert rows["wants"][2:7] == ["pending", "-", "-", "-", "spread/default"]
    assert re.fullmatch(r"\d+d", rows["whole"][8])


async def test_shapes_of_claims(live: LiveCluster) -> None:
    """Namespaces, selectors, orders, and the outputs for programs."""
    two_nodes(live)
    live.claim("mine", picked("gpu-2"), labels={"team": "a"})
    assert (await live.run("claims", "-A")).stdout.startswith("NAMESPACE ")
    assert (await live.run("claims", "-n", "nowhere")).stdout == ""
    names = (await live.run("claims", "-l", "team=a", "-o", "name")).stdout
    assert names == "resourceclaim.resource.k8s.io/mine\n"
    bare = (await live.run("claims", "--no-headers", "--sort-by", "devices")).stdout
    assert [line.split()[0] for line in bare.splitlines()] == ["whole", "other", "part", "mine"]
    as_yaml = yaml.safe_load((await live.run("claims", "-o", "yaml")).stdout)
    as_json = json.loads((await live.run("claims", "-o", "json")).stdout)
    assert as_yaml == as_json
    assert (as_json["apiVersion"], as_json["kind"]) == ("quadrant.dev/v1alpha1", "Claims")
    wide = (await live.run("claims", "-o", "wide")).stdout
    assert "8192Mi" in wide
    assert "GPU-0" in wide


async def test_claims_for_spreadsheets(live: LiveCluster) -> None:
    """Every column of every row, quoted where a comma is part of it; what is unknown is empty."""
    two_nodes(live)
    live.claim("wants")
    live.claim("two", picked("gpu-2"), picked("gpu-0", node="b"))
    text = (await live.run("claims", "-o", "csv")).stdout
    rows = {row["NAME"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {row["NAMESPACE"] for row in rows.values()} == {"ns"}
    assert (rows["whole"]["STATE"], rows["whole"]["UUID"]) == ("allocated,reserved", "GPU-0")
    assert rows["part"]["SHARE"] == "8192Mi"
    assert (rows["wants"]["NODE"], rows["wants"]["SCORE"]) == ("", "")
    bare = (await live.run("claims", "-o", "csv", "--no-headers")).stdout
    assert bare.splitlines() == text.splitlines()[1:]


async def test_a_right_that_is_missing_is_named(live: LiveCluster) -> None:
    """What the command lives on: an error. What only adds a detail: a word on stderr."""
    two_nodes(live)
    live.forbid("deviceclasses")
    live.forbid("/events")
    done = await live.run("claims")
    assert done.exit_code == 0
    assert "deviceclasses are not looked at: no right to list them" in done.stderr
    assert "scores are not known: no right to list events" in done.stderr
    assert "whole" in done.stdout
    live.forbid("resourceslices")
    done = await live.run("matrix")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "resourceslices cannot be listed" in str(done.exception)
    assert 'cannot list resource "resourceslices"' in str(done.exception)


async def test_topo(live: LiveCluster) -> None:
    """The letters of nvidia-smi, and the pairs that a claim has together."""
    cards = [card(n, group="" if n > 1 else "0", numa=min(n // 2, 1)) for n in range(6)]
    for made, root in zip(cards, (0, 0, 1, 1, 1), strict=False):
        made["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": f"pci{root}"}
    for made in cards[3:5]:
        made["attributes"]["pcieSwitch"] = {"string": "0000:41:00.0"}
    live.node("a", cards)
    live.claim("both", picked("gpu-0"), picked("gpu-1"))
    lines = (await live.run("topo", "a")).stdout.splitlines()
    assert lines[1].split() == [
        *(f"GPU{n}" for n in range(6)), "NUMA", "NVLINK", "USE", "CLAIMS",
    ]  # fmt: skip
    assert lines[2].split() == ["GPU0", "X", "[NV]", *["SYS"] * 4, "0", "0", "whole", "ns/both"]
    assert lines[5].split() == [
        *("GPU3", "SYS", "SYS", "PHB", "X", "PIX", "NODE", "1", "-", "free", "-")
    ]
    legend = "\n".join(lines[8:])
    assert "PIX through the same PCIe switch" in legend
    assert "PHB through the same PCIe root" in legend
    assert "[..] one claim has both cards" in legend
    found = json.loads((await live.run("topo", "a", "-o", "json")).stdout)
    assert found["links"][0] == ["X", "NV", *["SYS"] * 4]


async def test_topo_of_a_node_without_cards(live: LiveCluster) -> None:
    """Says which nodes there are."""
    live.node("a", [card(0)])
    done = await live.run("topo", "b")
    assert done.exit_code == 1
    assert "node 'b' does not exist; there are: a" in str(done.exception)


@pytest.mark.parametrize("arguments", [("matrix", "-o", "csv"), ("claims", "--sort-by", "colour")])
async def test_options_that_mean_nothing(live: LiveCluster, arguments: tuple[str, ...]) -> None:
    """A wrong call is told before the cluster is asked."""
    done = await live.run(*arguments)
    assert isinstance(done.exception, UsageError)
    assert "expected one of" in str(done.exception)
    assert live.server.requests == []


@pytest.mark.parametrize("command", ["matrix", "claims", "doctor", "explain pod/a", "snapshot"])
async def test_a_cluster_that_does_not_answer(live: LiveCluster, command: str) -> None:
    """`--request-timeout` ends the wait."""
    live.server.answering.clear()
    done = await live.run(*command.split(), "--request-timeout", "50ms")
    assert isinstance(done.exception, KubeError)
    assert "did not answer within 0.05 s" in str(done.exception)
    live.server.answering.set()


async def test_watching_shows_what_changes(live: LiveCluster) -> None:
    """A second picture comes when something is another, and only then."""
    two_nodes(live)
    command = [sys.executable, "-u", "-m", "driver.cli", "claims", "-w", "--no-headers"]
    process = await asyncio.create_subprocess_exec(
        *command,
        "--kubeconfig",
        str(live.kubeconfig()),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        seen = [await process.stdout.readline() for _ in range(4)]
        assert sum(b"ns" in line or b"allocated" in line for line in seen) == 3
        live.claim("late", picked("gpu-3"))
        more = [await process.stdout.readline() for _ in range(2)]
        assert any(line.startswith(b"late") for line in more)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("passed", "shown"),
    [(0, "0s"), (119, "119s"), (330, "5m30s"), (600, "10m"), (3 * 3600 + 300, "3h5m"),
     (9 * 3600, "9h"), (3 * 86400 + 4 * 3600, "3d4h"), (100 * 86400, "100d")],
)  # fmt: skip
def test_ages_are_those_of_kubectl(passed: int, shown: str) -> None:
    """By the steps of HumanDuration."""
    now = datetime.fromtimestamp(10**9 + passed, UTC)
    created = datetime.fromtimestamp(10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert age(created, now) == shown


def given(index: int, device: str = "d", profile: str = "") -> Given:
    """One device of a claim."""
    return Given(
        request="r", pool="p", device=device, index=index, uuid="", profile=profile, share_id="",
        memory_mib=0, cores=0, admin_access=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ([given(2), given(0), given(1)], "0-2"),
        ([given(0), given(2), given(3)], "0,2-3"),
        ([given(-1, "odd")], "odd"),
        ([given(3), given(1, profile="2g.20gb")], "3,1:2g.20gb"),
        ([given(4), given(4)], "4"),
    ],
)
def test_devices_by_index(found: list[Given], shown: str) -> None:
    """Ranges where indices follow each other; whatever has none, by name."""
    assert devices(found) == shown


@pytest.mark.parametrize(
    ("sentence", "policy", "score"),
    [
        ("t4/gpu-3 by compact, score 97.66 (fullness 97.66); next t4/gpu-0", "compact", 97.66),
        ("t4/gpu-3 by first-fit", "first-fit", None),
        ("a/gpu-0, a/gpu-1 by topology,compact, score -3; 1 device no candidate: x by y",
         "topology,compact", -3.0),
    ],
)  # fmt: skip
def test_what_an_event_says(sentence: str, policy: str, score: float | None) -> None:
    """The sentence of the controller, read back."""
    word = read(sentence)
    assert word is not None
    assert (word.policy, word.score) == (policy, score)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("10s", 10.0), ("1m", 60.0), ("0", None), ("1.5", 1.5), ("2h", 7200.0), ("250ms", 0.25)],
)
def test_timeouts_as_kubectl_takes_them(text: str, limit: float | None) -> None:
    """A duration, or a number of seconds."""
    assert seconds(text) == limit


def test_a_timeout_that_cannot_be_read() -> None:
    """Says what was expected."""
    with pytest.raises(UsageError, match="expected a duration such as 10s"):
        seconds("soon")
