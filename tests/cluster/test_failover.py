"""Two controllers under a continuous burst: killed, frozen, cut off; no device is given twice."""

import asyncio
import json
import logging
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from driver.kube.rest import Rest
from driver.kube.session import open_session
from hack.deployment import NAMESPACE, REPOSITORY, Deployment, Part, identity
from tests.cluster import history
from tests.cluster.churn import API, Churn, Fleet, listed
from tests.cluster.relay import Relay

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.cluster, pytest.mark.churn]
NAME = "ha"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/quadrant-controller"
# A lease lasts 15 s: the other one leads well before this is over.
AWAY_S = 25.0
# Long enough for a busy machine; how long it took is logged.
RESUMES_WITHIN_S = 60.0


def hack_cluster(command: str, *options: str) -> str:
    """Run hack/cluster on the cluster of this test."""
    done = subprocess.run(
        [REPOSITORY / "hack" / "cluster", command, "--name", NAME, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    hack_cluster("up", "--control-plane-only", "--qps", "1000", "--json-storage")
    with ExitStack() as stack:
        stack.callback(hack_cluster, "down")
        state = json.loads(hack_cluster("status", "-o", "json"))
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
    await resumed(nodes, "from the start")
    for fault in (killed, frozen, cut_off):
        before = pair.leader
        assert before is not None
        await fault(pair, before, lambda what: resumed(nodes, what))
        assert pair.leader == 1 - before, f"{fault.__name__}: the same replica leads"
    churn.cancel()

    judge = history.Judge(pair.deployment.state["etcd"])
    published = history.devices(await listed(nodes.rest, f"{API}/resourceslices"))
    assert await asyncio.to_thread(judge.wrongs, published) == []
    assert judge.allocations > nodes.whole_places + nodes.shared_places


Resumed = Callable[[str], Awaitable[None]]


async def killed(pair: Pair, leader: int, resumed: Resumed) -> None:
    """The leader dies at once; it comes back and stands by."""
    pair.part(leader).stop(signal.SIGKILL)
    await resumed("after the leader was killed")
    pair.part(leader).start()
    await asyncio.sleep(AWAY_S / 2)


async def frozen(pair: Pair, leader: int, resumed: Resumed) -> None:
    """The leader stands still for longer than its lease, then wakes with old ideas."""
    pair.part(leader).send(signal.SIGSTOP)
    try:
        await resumed("after the leader was frozen")
        await asyncio.sleep(AWAY_S / 2)
    finally:
        pair.part(leader).send(signal.SIGCONT)
    await asyncio.sleep(AWAY_S / 2)


async def cut_off(pair: Pair, leader: int, resumed: Resumed) -> None:
    """The leader is asked still, but reaches the API server no longer."""
    pair.cables[leader].cut()
    try:
        await resumed("after the leader was cut off")
        await asyncio.sleep(AWAY_S / 2)
    finally:
        pair.cables[leader].mend()
    await asyncio.sleep(AWAY_S / 2)


async def resumed(nodes: Fleet, what: str) -> None:
    """Wait until a claim is allocated that had nothing a moment ago."""
    # What was answered before the fault may still be on its way to etcd.
    await asyncio.sleep(1.0)
    began = time.monotonic()
    known = await allocated(nodes)
    while not await allocated(nodes) - known:
        assert time.monotonic() - began < RESUMES_WITHIN_S, f"no commit {what}"
        await asyncio.sleep(0.2)
    log.info("commits go on %s: %.1f s", what, time.monotonic() - began + 1)


async def allocated(nodes: Fleet) -> set[str]:
    """The claims that have devices, by UID."""
    return {claim["metadata"]["uid"] for claim in await nodes.claims() if history.results(claim)}
