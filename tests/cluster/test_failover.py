"""Two controllers under a continuous burst: killed, frozen, cut off; no device is given twice."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from driver.kube.rest import Rest
from driver.kube.session import open_session
from hack.deployment import NAMESPACE, Deployment, Part, identity
from tests.cluster import history
from tests.cluster.churn import API, Churn, Fleet, listed
from tests.cluster.relay import Relay
from tests.cluster.site import hack_cluster

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.cluster, pytest.mark.churn]
NAME = "ha"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/quadrant-controller"
TAKEN_OVER = '"message":"no earlier answer can land"'
SAID = ("free_claims", "list_s", "proof_s", "list_again_s")
# A lease lasts 10 s: the other one leads well before this is over.
AWAY_S = 20.0
# Long enough for a busy machine; how long it took is logged.
RESUMES_WITHIN_S = 120.0
Json = dict[str, Any]


class Pair:
    """Two controllers behind what stands for their Service, each with a cable of its own."""

    def __init__(self, deployment: Deployment, cables: list[Relay]) -> None:
        self.deployment = deployment
        self.cables = cables
        # What the Service's endpoint is: the replica that carries the leader's label.
        self.leader: int | None = None

    def part(self, controller: int) -> Part:
        """Its process."""
        return self.deployment.controllers[controller]

    def take_overs(self, controller: int) -> list[Json]:
        """What its log says of every time that it became ready to answer."""
        lines = self.part(controller).log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if TAKEN_OVER in line]

    async def follow(self, rest: Rest) -> None:
        """Have the Service lead to whom the Lease names, as the leader's label does."""
        while True:
            lease = json.loads(await rest.get(LEASE))
            self.leader = _who(lease["spec"].get("holderIdentity") or "")
            await asyncio.sleep(0.2)


def _who(holder: str) -> int | None:
    names = [number for number in range(2) if holder.startswith(f"{identity(number)}_")]
    return names[0] if names else None


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A control plane without nodes, and two controllers."""
    hack_cluster(NAME, "up", "--control-plane-only", "--qps", "1000", "--json-storage")
    with ExitStack() as stack:
        stack.callback(hack_cluster, NAME, "down")
        state = json.loads(hack_cluster(NAME, "status", "-o", "json"))
        server = _server(Path(state["kubeconfig"]))
        cables = [stack.enter_context(Relay(lambda: server).running()) for _ in range(2)]
        configs = [_through(Path(state["kubeconfig"]), cable, tmp_path) for cable in cables]
        deployment = Deployment(state, tmp_path, controllers=2, kubeconfigs=configs)
        stack.callback(deployment.down)
        made = Pair(deployment, cables)
        service = stack.enter_context(Relay(lambda: _port(made)).running())
        deployment.up()
        deployment.start_standby()
        deployment.install_webhooks(f"https://127.0.0.1:{service.port}")
        yield made


def _port(pair: Pair) -> int | None:
    return None if pair.leader is None else pair.deployment.port(pair.leader)


def _server(kubeconfig: Path) -> int:
    document = yaml.safe_load(kubeconfig.read_text())
    return int(urlsplit(document["clusters"][0]["cluster"]["server"]).port or 443)


def _through(kubeconfig: Path, cable: Relay, folder: Path) -> str:
    """The same access by way of a relay."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{cable.port}"
    file = folder / f"kubeconfig-{cable.port}"
    file.write_text(yaml.safe_dump(document))
    return str(file)


@pytest.fixture
async def nodes(pair: Pair) -> AsyncIterator[Fleet]:
    """Thirty nodes, and somebody who follows the Lease."""
    async with open_session(pair.deployment.state["kubeconfig"]) as session:
        made = Fleet(Rest(session), whole=20, shared=10)
        await made.create()
        following = asyncio.create_task(pair.follow(made.rest))
        yield made
        following.cancel()


async def test_no_double_use_whatever_becomes_of_the_leader(pair: Pair, nodes: Fleet) -> None:
    """Commits go on after each fault; the history of etcd has no device in two hands."""
    churn = asyncio.create_task(Churn(nodes, seed=2).run(3600))
    await resumed(nodes)
    for fault in (killed, frozen, cut_off):
        before = pair.leader
        assert before is not None
        await fault(pair, nodes, before)
        assert pair.leader == 1 - before, f"{fault.__name__}: the same replica leads"
    churn.cancel()

    judge = history.Judge(pair.deployment.state["etcd"])
    published = history.devices(await listed(nodes.rest, f"{API}/resourceslices"))
    assert await asyncio.to_thread(judge.wrongs, published) == []
    assert judge.allocations > nodes.whole_places + nodes.shared_places


async def killed(pair: Pair, nodes: Fleet, leader: int) -> None:
    """The leader dies at once; it comes back and stands by."""
    pair.part(leader).stop(signal.SIGKILL)
    await taken_over(pair, nodes, "leader killed", by=1 - leader)
    await asyncio.to_thread(pair.deployment.start_standby, leader)


async def frozen(pair: Pair, nodes: Fleet, leader: int) -> None:
    """The leader stands still for longer than its lease, then wakes with old ideas."""
    pair.part(leader).send(signal.SIGSTOP)
    try:
        await taken_over(pair, nodes, "leader frozen", by=1 - leader)
        await asyncio.sleep(AWAY_S / 2)
    finally:
        pair.part(leader).send(signal.SIGCONT)
    await asyncio.sleep(AWAY_S / 2)


async def cut_off(pair: Pair, nodes: Fleet, leader: int) -> None:
    """The leader is asked still, but reaches the API server no longer."""
    pair.cables[leader].cut()
    try:
        await taken_over(pair, nodes, "leader cut off", by=1 - leader)
        await asyncio.sleep(AWAY_S / 2)
    finally:
        pair.cables[leader].mend()
    await asyncio.sleep(AWAY_S / 2)


async def taken_over(pair: Pair, nodes: Fleet, what: str, *, by: int) -> None:
    """Wait for the first commit of the next leader, and log where the time went until then."""
    began, terms = datetime.now(UTC), len(pair.take_overs(by))
    # The old leader may go on for as long as its last renewal lasts.
    async with asyncio.timeout(RESUMES_WITHIN_S):
        while len(pair.take_overs(by)) == terms:  # noqa: ASYNC110 # it is in a file
            await asyncio.sleep(0.1)
    await resumed(nodes)
    committed = datetime.now(UTC)
    term = pair.take_overs(by)[terms]
    answers = datetime.fromisoformat(term["time"])
    log.info(
        "%s: answers again after %.1f s, next commit after %.1f s; load %.1f; take-over: %s",
        what,
        (answers - began).total_seconds(),
        (committed - began).total_seconds(),
        os.getloadavg()[0],
        {name: value for name, value in term.items() if name in SAID},
    )
    assert term["by"] == "fences", "waited until no earlier answer could land"


async def resumed(nodes: Fleet) -> None:
    """Wait until a claim is allocated that is not now."""
    known = await allocated(nodes)
    async with asyncio.timeout(RESUMES_WITHIN_S):
        while not await allocated(nodes) - known:  # noqa: ASYNC110 # nobody tells
            await asyncio.sleep(0.1)


async def allocated(nodes: Fleet) -> set[str]:
    """The claims that have devices, by UID."""
    return {claim["metadata"]["uid"] for claim in await nodes.claims() if history.results(claim)}
