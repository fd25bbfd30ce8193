"""The whole plugin between a kubelet and an API server, over real sockets."""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driver.kube.errors import CredentialsError
from driver.kube.rest import Rest
from driver.model.resourceclaim import ResourceClaim
from driver.node.card import Inventory
from driver.node.errors import NodeError, SettingsError
from driver.node.publish import SLICES
from driver.node.run import Connect, NodePlugin, run
from driver.node.settings import NodeSettings
from driver.node.simulated import SimulatedInventory
from driver.wire.encode import builtins
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.logged import logged
from tests.node.builders import NODE, UIDS, claim, ref, result
from tests.node.kubelet import Kubelet, register
from tests.node.test_publish import until

EVENTS = "/apis/events.k8s.io/v1/events"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """A cluster with the node in it."""
    async with ApiServer() as running:
        running.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": "node-uid"}})
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: pytest's own are too long for a socket in them."""
    with tempfile.TemporaryDirectory(prefix="q") as made:
        yield Path(made)


@pytest.fixture
def settings(folder: Path) -> NodeSettings:
    """A plugin of four T4 in a folder of its own."""
    return NodeSettings(
        node_name=NODE,
        simulate="4xT4",
        plugins_dir=f"{folder}/p",
        registry_dir=f"{folder}/r",
        cdi_dir=f"{folder}/c",
    )


@asynccontextmanager
async def serving(
    server: ApiServer,
    settings: NodeSettings,
    cards: Inventory | None = None,
    *,
    connect: Connect | None = None,
) -> AsyncIterator[None]:
    """The plugin, running until the end of the block, then ended as by SIGTERM."""
    plugin = await asyncio.to_thread(NodePlugin, settings, cards=cards)
    stop = asyncio.Event()
    task = asyncio.ensure_future(plugin.serve(connect or (lambda: connected(server)), stop))
    registration = Path(settings.registration_socket())
    await until(lambda: answers(registration) or task.done())
    try:
        yield
    finally:
        stop.set()
        await task


@asynccontextmanager
async def connected(server: ApiServer) -> AsyncIterator[Rest]:
    """The connection that a plugin makes by itself otherwise."""
    async with server.session() as session:
        yield Rest(session)


def answers(path: Path) -> bool:
    """Whether a process listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def put(server: ApiServer, found: ResourceClaim) -> None:
    """Have a claim in the cluster."""
    server.put(CLAIMS, builtins(found))


def cdi_files(settings: NodeSettings) -> list[str]:
    """What is in the CDI folder."""
    return names_in(settings.cdi_dir)


def names_in(folder: str | Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(
    ("known", "shares"),
    [(("v1.DRAPlugin", "v1beta1.DRAPlugin"), True), (("v1beta1.DRAPlugin",), False)],
)
async def test_the_life_of_a_claim(
    server: ApiServer, settings: NodeSettings, known: tuple[str, ...], *, shares: bool
) -> None:
    """Registered, prepared, unprepared, in both versions of the service."""
    put(server, claim(0, result("gpu-1", "gpu/first", memory="4Gi", cores="10", share="s-1")))
    async with serving(server, settings), register(Path(settings.registry_dir), known) as kubelet:
        info: Any = kubelet.info
        assert (info.type, info.name) == ("DRAPlugin", "gpu.quadrant.dev")
        assert list(info.supported_versions) == [
            "v1.DRAPlugin",
            "v1beta1.DRAPlugin",
            "v1.DRAResourceHealth",
            "v1alpha1.DRAResourceHealth",
        ]
        assert Path(info.endpoint).is_absolute()
        answer: Any = (await kubelet.prepare(ref(0)))[UIDS[0]]
        [device] = answer.devices
        assert (device.pool_name, device.device_name) == (NODE, "gpu-1")
        assert list(device.request_names) == ["gpu"]
        assert getattr(device, "share_id", None) == ("s-1" if shares else None)
        file = f"k8s.gpu.quadrant.dev-claim_{UIDS[0]}.json"
        assert cdi_files(settings) == [file]
        spec = json.loads((Path(settings.cdi_dir) / file).read_bytes())
        known_ids = {f"{spec['kind']}={item['name']}" for item in spec["devices"]}
        assert set(device.cdi_device_ids) == known_ids
        gone: Any = await kubelet.unprepare(ref(0))
        assert gone[UIDS[0]].error == ""
        assert cdi_files(settings) == []


async def test_cards_that_the_toolkit_describes(
    server: ApiServer, settings: NodeSettings, folder: Path
) -> None:
    """Hardware: the toolkit's CDI device beside ours, where there is one."""
    cards = SimulatedInventory("4xT4", NODE)
    uuid = cards.cards()[1].uuid
    described = {"kind": "nvidia.com/gpu", "devices": [{"name": uuid}]}
    (folder / "nvidia.json").write_text(json.dumps(described))
    hardware = msgspec.structs.replace(settings, simulate="", vendor_cdi_dirs=(str(folder),))
    put(server, claim(0, result("gpu-1", "a"), result("gpu-2", "b")))
    async with serving(server, hardware, cards), register(Path(settings.registry_dir)) as kubelet:
        answer: Any = (await kubelet.prepare(ref(0)))[UIDS[0]]
    ids = [list(device.cdi_device_ids) for device in answer.devices]
    assert f"nvidia.com/gpu={uuid}" in ids[0]
    assert not any(cdi_id.startswith("nvidia.com") for found in ids[1:] for cdi_id in found)


async def test_the_lines_of_a_claim_have_its_operation(
    server: ApiServer, settings: NodeSettings
) -> None:
    """From the call to the reason why it was refused; claims of one call do not share one."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-0")))
    put(server, claim(2))
    with logged() as lines:
        async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
            await kubelet.prepare(ref(0))
            await kubelet.prepare(ref(1), ref(2), ref(3))
        found: dict[str, set[str]] = {}
        for line in lines():
            if "claim" in line:
                found.setdefault(line["claim"], set()).add(line["operation"])
        refused = [line for line in lines() if line["message"] == "claim refused"]
    assert len(refused) == 3
    assert {str(ref(number)) for number in (1, 2, 3)} <= set(found)
    assert all(len(operations) == 1 for operations in found.values())
    assert len(set().union(*found.values())) == len(found)


async def test_every_claim_is_answered_for_itself(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Good and bad ones in one call, the same one twice, and an API server that fails."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-0")))
    put(server, claim(2))
    server.refuse(
        Refusal(403, "Forbidden", "not you"), times=1, path=f"resourceclaims/{ref(3).name}"
    )
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0))
        asked = [ref(n) for n in (0, 1, 2, 3, 4, 0)]
        answers: Any = await kubelet.prepare(*asked)
        assert set(answers) == set(UIDS[:5])
        assert answers[UIDS[0]].error == ""
        for number, said in (
            (1, "held by claim default/claim-0"),
            (2, "is not allocated"),
            (3, "not you"),
            (4, "does not exist any more"),
        ):
            assert said in answers[UIDS[number]].error
            assert not answers[UIDS[number]].devices
        released: Any = await kubelet.unprepare(*asked)
        assert {answer.error for answer in released.values()} == {""}
        assert set(released) == set(UIDS[:5])


async def test_a_device_in_use_is_told_on_the_claim(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Whoever describes the waiting claim reads why it waits."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-0")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0))
        await kubelet.prepare(ref(1))
        await until(lambda: len(server.objects.in_collection(EVENTS)) == 1)
    [event] = server.objects.in_collection(EVENTS)
    assert (event["type"], event["reason"]) == ("Warning", "DeviceInUse")
    assert event["regarding"]["uid"] == UIDS[1]
    assert "held by claim default/claim-0" in event["note"]


async def test_a_claim_is_read_from_the_server_each_time(
    server: ApiServer, settings: NodeSettings
) -> None:
    """A cache could say what was true before the scheduler changed its mind."""
    put(server, claim(0, result("gpu-0")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        for _ in range(2):
            await kubelet.prepare(ref(0))
    reads = [r for r in server.requests if r.startswith("GET") and "resourceclaims/claim-0" in r]
    assert len(reads) == 2


async def test_a_restart_under_running_pods(server: ApiServer, settings: NodeSettings) -> None:
    """Prepared state, slices and a socket in the same place; nothing to be seen by pods."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-0")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        before: Any = await kubelet.prepare(ref(0))
        await until(lambda: len(server.objects.in_collection(SLICES)) == 1)
    assert not names_in(settings.registry_dir)
    [kept] = server.objects.in_collection(SLICES)
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        after: Any = await kubelet.prepare(ref(0))
        assert after == before
        refused: Any = await kubelet.prepare(ref(1))
        assert "held by claim" in refused[UIDS[1]].error
    assert server.objects.in_collection(SLICES) == [kept], "nothing changed, nothing written"


async def test_a_rolling_update_has_no_gap(server: ApiServer, settings: NodeSettings) -> None:
    """The new instance prepares and unprepares beside the old one, on the same state."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-0")))
    old = msgspec.structs.replace(settings, pod_uid="11111111")
    new = msgspec.structs.replace(settings, pod_uid="22222222")
    registry = Path(settings.registry_dir)
    async with serving(server, old), register(registry) as kubelet:
        await kubelet.prepare(ref(0))
        async with serving(server, new):
            names = names_in(registry)
            assert names == [f"gpu.quadrant.dev-{uid}-reg.sock" for uid in ("11111111", "22222222")]
            old_registration = registry / names[0]
            hidden = old_registration.rename(registry.parent / "hidden.sock")
            async with register(registry) as other:
                refused: Any = await other.prepare(ref(1))
                assert "held by claim" in refused[UIDS[1]].error
                await other.unprepare(ref(0))
                hidden.rename(old_registration)
                accepted: Any = await kubelet.prepare(ref(1))
                assert accepted[UIDS[1]].error == ""
    assert cdi_files(settings) == [f"k8s.gpu.quadrant.dev-claim_{UIDS[1]}.json"]


async def _lose_everything(server: ApiServer, settings: NodeSettings) -> None:
    """Claim 0 (gpu-0) is prepared; then neither checkpoint nor CDI files are there any more."""
    put(server, claim(0, result("gpu-0")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0))
    await asyncio.to_thread(_remove_state, settings)


def _remove_state(settings: NodeSettings) -> None:
    (Path(settings.data_dir()) / "claims.journal").unlink()
    for path in Path(settings.cdi_dir).iterdir():
        path.unlink()


async def test_after_a_total_loss_the_api_server_says_what_is_held(
    server: ApiServer, settings: NodeSettings
) -> None:
    """A listing, once; no claim is prepared before it is there."""
    await _lose_everything(server, settings)
    server.requests.clear()
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        put(server, claim(1, result("gpu-0")))
        refused: Any = await kubelet.prepare(ref(1))
        assert "held by claim default/claim-0" in refused[UIDS[1]].error
        again: Any = await kubelet.prepare(ref(0))
        assert again[UIDS[0]].error == ""
    async with serving(server, settings):
        pass
    listings = [r for r in server.requests if r.startswith(f"GET {CLAIMS}?")]
    assert len(listings) == 1


async def test_a_plugin_that_may_not_list_claims_works_all_the_same(
    server: ApiServer, settings: NodeSettings
) -> None:
    """With the rights of an older chart; what is lost stays lost then."""
    await _lose_everything(server, settings)
    server.refuse(Refusal(403, "Forbidden", "not you"), times=1, path="resourceclaims")
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        answer: Any = await kubelet.prepare(ref(0))
        assert answer[UIDS[0]].error == ""


async def test_many_claims_at_once(server: ApiServer, settings: NodeSettings) -> None:
    """More calls than are worked on at the same time; all are answered, nothing is left."""
    shares = [claim(n, result("gpu-0", memory="100Mi", cores="1")) for n in range(8)]
    for found in shares:
        put(server, found)
    limited = msgspec.structs.replace(settings, parallel_claims=2)
    async with serving(server, limited), register(Path(settings.registry_dir)) as kubelet:
        answers: Any = await asyncio.gather(*(kubelet.prepare(ref(n)) for n in range(8)))
        assert all(not a.error for answer in answers for a in answer.values())
        assert len(cdi_files(settings)) == 8
        await asyncio.gather(*(kubelet.unprepare(ref(n)) for n in range(8)))
        assert cdi_files(settings) == []


async def test_a_call_that_the_kubelet_gives_up_is_finished_all_the_same(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Half a step on disk helps nobody; the next call finds the claim prepared."""
    put(server, claim(0, result("gpu-0")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        server.answering.clear()
        call = asyncio.ensure_future(kubelet.prepare(ref(0)))
        await until(lambda: any("resourceclaims/claim-0" in r for r in server.requests))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        server.answering.set()
        await until(lambda: len(cdi_files(settings)) == 1)


async def test_pods_can_end_while_the_api_server_does_not_answer(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Unprepare needs nothing from it, also for a claim whose prepare still waits."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-1")))
    single = msgspec.structs.replace(settings, parallel_claims=1)
    async with serving(server, single), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0))
        server.answering.clear()
        waiting = asyncio.ensure_future(kubelet.prepare(ref(1)))
        await until(lambda: any("resourceclaims/claim-1" in r for r in server.requests))
        async with asyncio.timeout(10):
            released: Any = await kubelet.unprepare(ref(0), ref(1))
        assert {answer.error for answer in released.values()} == {""}
        server.answering.set()
        late: Any = await waiting
        assert "was unprepared while it was read" in late[UIDS[1]].error
        assert cdi_files(settings) == []


async def test_a_refused_registration_does_not_end_the_plugin(
    server: ApiServer, settings: NodeSettings
) -> None:
    """The kubelet may accept it later."""
    async with serving(server, settings):
        async with register(Path(settings.registry_dir), error="no"):
            pass
        async with register(Path(settings.registry_dir)) as kubelet:
            assert isinstance(kubelet, Kubelet)


async def test_sockets_of_killed_instances_are_replaced_or_cleared(
    server: ApiServer, settings: NodeSettings, folder: Path
) -> None:
    """The own one is bound anew, one of another instance is removed, a living one stays."""
    script = (
        "import socket, sys\n"
        "for path in sys.argv[1:]:\n"
        "    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()\n"
    )
    registry, data = folder / "r", folder / "p" / "gpu.quadrant.dev"
    data.mkdir(parents=True)
    registry.mkdir()
    dead = [
        registry / "gpu.quadrant.dev-reg.sock",
        registry / "gpu.quadrant.dev-dead-reg.sock",
        data / "dra.sock",
        data / "dra-dead.sock",
    ]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, *map(str, dead))
    await process.wait()
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(registry / "gpu.quadrant.dev-b-reg.sock"))
        living.listen()
        async with serving(server, settings):
            assert names_in(registry) == [
                "gpu.quadrant.dev-b-reg.sock",
                "gpu.quadrant.dev-reg.sock",
            ]
            assert not dead[3].exists()
            (registry / "gpu.quadrant.dev-b-reg.sock").unlink()
            async with register(registry) as kubelet:
                await kubelet.unprepare(ref(0))


async def test_something_else_at_a_sockets_place_is_not_removed(
    server: ApiServer, settings: NodeSettings
) -> None:
    """It is somebody's file."""
    path = Path(settings.registration_socket())
    path.parent.mkdir()
    path.write_text("mine")  # noqa: ASYNC240  (before anything runs)
    with pytest.raises(NodeError, match="is in the way: expected a unix socket"):
        async with serving(server, settings):
            pass
    assert path.read_text() == "mine"  # noqa: ASYNC240  (after everything ran)


async def test_the_kubelet_is_answered_before_there_is_a_connection(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Registered and unprepared at once; a prepare waits until the claim can be read."""
    put(server, claim(0, result("gpu-0")))
    connect = asyncio.Event()

    @asynccontextmanager
    async def late() -> AsyncIterator[Rest]:
        await connect.wait()
        async with connected(server) as rest:
            yield rest

    registry = Path(settings.registry_dir)
    async with serving(server, settings, connect=late), register(registry) as kubelet:
        await kubelet.unprepare(ref(1))
        waiting = asyncio.ensure_future(kubelet.prepare(ref(0)))
        await kubelet.unprepare(ref(2))
        assert not waiting.done()
        connect.set()
        answer: Any = await waiting
        assert answer[UIDS[0]].error == ""


async def test_a_plugin_that_ends_before_it_is_connected_keeps_nobody_waiting(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Neither the kubelet nor itself."""
    put(server, claim(0, result("gpu-0")))

    @asynccontextmanager
    async def never() -> AsyncIterator[Rest]:
        await asyncio.Event().wait()
        async with connected(server) as rest:
            yield rest

    registry = Path(settings.registry_dir)
    async with asyncio.timeout(20), AsyncExitStack() as plugin:
        await plugin.enter_async_context(serving(server, settings, connect=never))
        async with register(registry) as kubelet:
            waiting = asyncio.ensure_future(kubelet.prepare(ref(0)))
            await kubelet.unprepare(ref(1))
            await plugin.aclose()
            answer: Any = await waiting
    assert "ended before it reached the API server" in answer[UIDS[0]].error


async def test_without_credentials_it_ends_with_the_sentence(settings: NodeSettings) -> None:
    """No traceback and no group of errors around it; the socket is gone."""
    lost = msgspec.structs.replace(settings, kubeconfig="/nowhere/at/all")
    with pytest.raises(CredentialsError, match="no kubeconfig at /nowhere/at/all"):
        await run(lost)
    assert not names_in(settings.registry_dir)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node_name": ""}, "nodeName is empty"),
        ({"simulate": "4xK80"}, "known are"),
        ({"parallel_claims": 0}, ">= 1 - at .*parallelClaims"),
        ({"cdi_dir": "run/cdi"}, "cdiDir must be an absolute path"),
        ({"registry_dir": "/" + "r" * 81}, "its folder may have 81 bytes"),
        ({"plugins_dir": "/" + "p" * 80, "pod_uid": "u" * 40}, r"its folder may have 57 bytes"),
    ],
)
def test_wrong_settings_are_refused_before_anything_starts(
    settings: NodeSettings, changes: dict[str, Any], said: str
) -> None:
    """Each with what would be right; the length of a socket's path with what is left."""
    with pytest.raises(SettingsError, match=said):
        NodePlugin(msgspec.structs.replace(settings, **changes))
    assert not Path(settings.cdi_dir).exists()


def test_unknown_settings_are_refused() -> None:
    """A typing mistake must not become a default."""
    assert msgspec.convert({"nodeName": "a"}, NodeSettings).shareable
    with pytest.raises(msgspec.ValidationError, match="sharable"):
        msgspec.convert({"nodeName": "a", "sharable": False}, NodeSettings)


async def test_the_process_ends_on_sigterm_and_keeps_its_slices(
    server: ApiServer, settings: NodeSettings, folder: Path
) -> None:
    """`run` itself: settings in, kubeconfig found, signals heard, exit status zero."""
    cluster = {"name": "c", "cluster": {"server": server.url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    given = msgspec.structs.replace(settings, kubeconfig=str(kubeconfig))
    script = (
        "import asyncio, sys, msgspec\n"
        "from driver.node.run import run\n"
        "from driver.node.settings import NodeSettings\n"
        "asyncio.run(run(msgspec.json.decode(sys.argv[1], type=NodeSettings)))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, msgspec.json.encode(given).decode(), env={**os.environ}
    )
    await until(lambda: len(server.objects.in_collection(SLICES)) == 1)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    assert len(server.objects.in_collection(SLICES)) == 1
    assert not names_in(settings.registry_dir)
