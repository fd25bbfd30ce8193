"""The pictures in docs/cli.md and docs/explain.md are what the program prints of such a cluster."""

import re
from pathlib import Path

from tests.cli.livecluster import EVENTS, PODS, LiveCluster
from tests.controller.commits import Json, gpu, picked
from tests.docs.commands import BLOCK
from tests.docs.shell import like

DOCS = Path(__file__).resolve().parents[2] / "docs"
_AGE = re.compile(r" +\w+$", re.MULTILINE)


def picture(page: str, first: str) -> str:
    """The block of a page that begins with this line, or with these words of it."""
    blocks = BLOCK.findall((DOCS / page).read_text("utf-8"))
    (found,) = (text for language, text in blocks if not language and text.startswith(first))
    return str(found)


def card(index: int, mebi: int = 81920, **facts: int | str) -> Json:
    """A card; `numa` and `root` are attributes of Kubernetes' own domain."""
    ours = {key: value for key, value in facts.items() if key not in ("numa", "root")}
    made = gpu(index, mebi=mebi, **ours)
    if "numa" in facts:
        made["attributes"]["resource.kubernetes.io/numaNode"] = {"int": facts["numa"]}
    if "root" in facts:
        made["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": facts["root"]}
    return made


def instance(parent: int, number: int) -> Json:
    """A part of a card."""
    texts = {"type": "mig", "parentUUID": f"GPU-{parent}", "profile": "1g.10gb"}
    attributes: Json = {name: {"string": value} for name, value in texts.items()}
    return {
        "name": f"gpu-{parent}-mig-{number}",
        "attributes": attributes | {"index": {"int": parent}},
        "capacity": {"memory": {"value": "10Gi"}},
    }


def chosen(live: LiveCluster, about: Json, note: str, *, kind: str = "ResourceClaim") -> None:
    """What the controller says of its choice."""
    where = {"name": note[:9].replace("/", "-"), "namespace": about["metadata"]["namespace"]}
    of = {"kind": kind, "uid": about["metadata"]["uid"]}
    event = {"reason": "DevicesChosen", "message": note, "involvedObject": of}
    live.server.put(EVENTS, {"metadata": where, "eventTime": "2026-11-30T19:44:07Z", **event})


async def test_matrix(live: LiveCluster) -> None:
    """Cards in parts, in NVLink groups, whole and shared, one closed, and a pod on its way."""
    taint = {"key": "gpu.quadrant.dev/unhealthy", "effect": "NoSchedule"}
    live.node("mig", [*(instance(0, number) for number in range(2)), card(1) | {"taints": [taint]}])
    for node in ("node-0", "node-1"):
        live.node(node, [card(number, nvlinkGroup=str(number // 4)) for number in range(8)])
    for number in range(2):
        live.claim(f"part-{number}", picked(f"gpu-0-mig-{number}", node="mig"))
    live.claim("train", *(picked(f"gpu-{number}", node="node-0") for number in range(4)))
    for number in range(3):
        live.claim(f"share-{number}", picked("gpu-5", node="node-1", mebi=16384))
    live.pod("next", nominated="node-1")
    shown = picture("cli.md", "NODE ")
    assert (await live.run("matrix")).stdout.startswith(shown)


async def test_claims(live: LiveCluster) -> None:
    """Allocated and reserved, allocated for a pod that owns it, and waiting; not the ages."""
    live.node("dgx", [card(number) for number in range(4)])
    live.node("t4", [card(number, 15360) for number in range(4)])
    train = live.claim(
        "train-gpu", *(picked(f"gpu-{number}", node="dgx") for number in range(4)), pod="train-0"
    )
    owner = {"kind": "Pod", "name": "serve-0", "uid": "serve-0"}
    serve = live.claim(
        "serve-gpu",
        picked("gpu-1", node="t4", mebi=7500),
        annotations={"quadrant.dev/node-policy": "spread"},
        metadata={"ownerReferences": [owner]},
    )
    live.claim("wants")
    chosen(live, train, "dgx/gpu-0 by topology, score 12.5 (links 12.5)")
    chosen(live, serve, "t4/gpu-1 by compact, score 97.66 (fullness 97.66)")
    shown = (await live.run("claims")).stdout.splitlines()
    page = picture("cli.md", "NAME ").splitlines()
    without = [{_AGE.sub("", line) for line in lines} for lines in (shown, page)]
    assert without[0] == without[1]


async def test_topo(live: LiveCluster) -> None:
    """Two cards with NVLink, had by one claim, and two behind one PCIe root."""
    linked = [card(number, nvlinkGroup="0", numa=0) for number in range(2)]
    rooted = [card(number, numa=1, root="pci0000:40") for number in (2, 3)]
    live.node("dgx", [*linked, *rooted])
    devices = (picked(f"gpu-{number}", node="dgx") for number in range(2))
    live.claim("train", *devices, metadata={"namespace": "team"})
    assert (await live.run("topo", "dgx")).stdout.startswith(picture("cli.md", "node dgx"))


async def test_explain(live: LiveCluster) -> None:
    """A share on a card that has another one, beside a card that is too full."""
    for node, mebi in (("t4", 15360), ("a10g", 23028)):
        live.node(node, [card(number, mebi) for number in range(4)])
    for name, device in (("a", "gpu-2"), ("b", "gpu-2"), ("c", "gpu-3")):
        live.claim(name, picked(device, node="t4", mebi=7500))
    share = {"capacity": {"requests": {"memory": "7500Mi"}}}
    space = {"namespace": "default"}
    mine = picked("gpu-3", node="t4", mebi=7500)
    live.claim("gpu", mine, pod="train-0", metadata=space, exactly=share)
    pod = live.server.put(
        PODS,
        {
            "metadata": {
                **space,
                "name": "train-0",
                "uid": "train-0",
                "labels": {"quadrant.dev/placed": "true"},
                "annotations": {"quadrant.dev/node-policy": "compact"},
            },
            "spec": {
                "nodeName": "t4",
                "containers": [{"name": "main"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
            },
        },
    )
    chosen(
        live, pod, "t4/gpu-3 by compact, score 97.66 (fullness of the chosen devices)", kind="Pod"
    )
    done = await live.run("explain", "pod/train-0", "-n", "default")
    assert like(done.stdout, picture("explain.md", "pod default/train-0")), done.output
