"""Health of the whole plugin: reports to the kubelet, taints on the slices."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driver.node.card import Card
from driver.node.health.bulletin import Bulletin, DeviceHealth
from driver.node.health.port import HealthSource
from driver.node.publish import SLICES
from driver.node.settings import NodeSettings
from driver.node.simulated import SimulatedInventory
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.node.builders import NODE
from tests.node.conftest import Boot
from tests.node.health.test_monitor import Hardware
from tests.node.kubelet import HEALTH, register
from tests.node.nvml import fake
from tests.node.test_plugin import folder, server, serving, settings
from tests.node.test_publish import slices, until

__all__ = ["folder", "server", "settings"]

UNKNOWN, HEALTHY, UNHEALTHY = range(3)


def fault(settings: NodeSettings, *lines: str) -> None:
    """Have simulated cards be as the lines say."""
    (Path(settings.data_dir()) / "faults").write_text("\n".join(lines))


def states(report: dict[str, Any]) -> list[int]:
    """The state of every device, in the order of the slice."""
    return [found.health for found in report.values()]


async def heard(reports: AsyncIterator[dict[str, Any]], expected: list[int]) -> dict[str, Any]:
    """The first report that says this."""
    async with asyncio.timeout(15):
        async for report in reports:
            if states(report) == expected:
                return report
    raise AssertionError("the stream ended")


def tainted(server: ApiServer) -> dict[str, list[tuple[str, str, str]]]:
    """The taints of the devices that have any."""
    return {
        item["name"]: [(t["key"], t.get("value", ""), t["effect"]) for t in item["taints"]]
        for found in slices(server)
        for item in found["spec"]["devices"]
        if item.get("taints")
    }


@pytest.mark.parametrize("service", HEALTH)
async def test_kubelets_hear_of_every_device(
    server: ApiServer, settings: NodeSettings, service: str
) -> None:
    """The whole state at once, and again on change, to each of several streams."""
    async with AsyncExitStack() as plugin:
        await plugin.enter_async_context(serving(server, settings))
        async with register(Path(settings.registry_dir)) as kubelet:
            first, second = kubelet.health(service), kubelet.health(service)
            report = await heard(first, [HEALTHY] * 4)
            assert list(report) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
            assert {found.device.pool_name for found in report.values()} == {NODE}
            assert all(abs(f.last_updated_time - time.time()) < 60 for f in report.values())
            await heard(second, [HEALTHY] * 4)
            fault(settings, "gpu-1 xid 79", "gpu-3 lost")
            ill = [HEALTHY, UNHEALTHY, HEALTHY, UNHEALTHY]
            report = await heard(first, ill)
            assert "XID 79 (fell off the bus)" in report["gpu-1"].message
            assert "does not answer" in report["gpu-3"].message
            await heard(second, ill)
            third = kubelet.health(service)
            assert states(await anext(third)) == ill
            await plugin.aclose()
            assert [report async for report in third] == [], "the end of the plugin"


async def test_a_bulletin_is_repeated_when_nothing_changes() -> None:
    """The kubelet takes what it has not heard of for a while for unknown."""
    bulletin = Bulletin(repeat_s=0.01)
    silent = asyncio.ensure_future(anext(bulletin.read()))
    await asyncio.sleep(0.1)
    assert not silent.done(), "nothing is known yet"
    one = DeviceHealth(device="gpu-0", status="Healthy", message="", known_at=1.0)
    bulletin.tell((one,))
    assert await silent == (one,)
    reports = bulletin.read()
    assert [await anext(reports) for _ in range(3)] == [(one,)] * 3
    later = msgspec.structs.replace(one, known_at=2.0)
    bulletin.tell((later,))
    assert await anext(reports) == (later,)
    bulletin.close()
    assert [report async for report in reports] == []


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
async def test_unhealthy_cards_are_tainted_until_they_recover(
    server: ApiServer, settings: NodeSettings, effect: Any
) -> None:
    """With the effect that the operator has chosen."""
    chosen = msgspec.structs.replace(settings, unhealthy_effect=effect)
    async with serving(server, chosen):
        await until(lambda: len(slices(server)) == 1)
        fault(settings, "gpu-1 xid 79", "gpu-2 ecc 4")
        await until(lambda: set(tainted(server)) == {"gpu-1", "gpu-2"})
        key = f"{settings.driver}/unhealthy"
        # The card says that it needs a reset, which is worse than the XID.
        await until(lambda: tainted(server)["gpu-1"] == [(key, "needs-gpu-reset", effect)])
        assert tainted(server)["gpu-2"] == [(key, "ecc", effect)]
        fault(settings)
        await until(lambda: tainted(server) == {})


async def test_a_taint_arrives_although_the_api_server_refuses_for_a_while(
    server: ApiServer, settings: NodeSettings
) -> None:
    """Refused, changed by somebody else meanwhile, and down; what is true in the end is there."""
    refusals = [Refusal(403, "Forbidden", "no"), Refusal(409, "Conflict", "changed")]

    def refuse(_old: Any, new: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return new

    async with serving(server, settings):
        await until(lambda: len(slices(server)) == 1)
        server.objects.admission[SLICES] = refuse
        fault(settings, "gpu-1 lost", "gpu-2 lost")
        await until(lambda: len(refusals) < 2)
        fault(settings, "gpu-1 lost", "gpu-3 remap")
        server.refuse(Refusal(503, "ServiceUnavailable", "down"), times=2)
        server.drop_watches()
        key = f"{settings.driver}/unhealthy"
        lost, remap = ((key, reason, "NoSchedule") for reason in ("lost", "remap"))
        await until(lambda: tainted(server).get("gpu-3") == [remap])
        assert not refusals
        assert tainted(server)["gpu-1"] == [lost]


async def test_taints_that_somebody_takes_away_are_put_back(
    server: ApiServer, settings: NodeSettings
) -> None:
    """An edited or deleted slice, and the time of the taint stays."""
    async with serving(server, settings):
        await until(lambda: len(slices(server)) == 1)
        fault(settings, "gpu-1 remap")
        await until(lambda: set(tainted(server)) == {"gpu-1"})
        before = slices(server)[0]["spec"]["devices"]
        [found] = slices(server)
        bare = [{**item, "taints": []} for item in before]
        server.put(SLICES, {**found, "spec": {**found["spec"], "devices": bare}})
        await until(lambda: slices(server)[0]["spec"]["devices"] == before)
        server.remove(SLICES, slices(server)[0]["metadata"]["name"])
        await until(lambda: bool(slices(server)))
        assert slices(server)[0]["spec"]["devices"] == before


async def test_a_restart_forgets_no_taint(server: ApiServer, settings: NodeSettings) -> None:
    """Not even for a moment: a pod could be sent to the card in it."""
    async with serving(server, settings):
        fault(settings, "gpu-1 xid 63")
        await until(lambda: set(tainted(server)) == {"gpu-1"})
        before = slices(server)[0]["spec"]["devices"]
    version = slices(server)[0]["metadata"]["resourceVersion"]
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await heard(kubelet.health(), [HEALTHY, UNHEALTHY, HEALTHY, HEALTHY])
        await asyncio.sleep(0.5)
    [found] = slices(server)
    assert found["spec"]["devices"] == before
    assert found["metadata"]["resourceVersion"] == version, "and nothing was written"


async def test_cards_of_nvidia_from_event_to_recovery(
    server: ApiServer, settings: NodeSettings, boot: Boot
) -> None:
    """Through NVML: the driver reports an XID, the card asks for a reset and gets it."""
    machine = boot("t4x4")
    hardware = msgspec.structs.replace(settings, simulate="")
    async with serving(server, hardware), register(Path(settings.registry_dir)) as kubelet:
        reports = kubelet.health()
        await heard(reports, [HEALTHY] * 4)
        machine.write(2, "recovery", "1")
        machine.event(2, fake.XID, 95)
        report = await heard(reports, [HEALTHY, HEALTHY, UNHEALTHY, HEALTHY])
        assert "XID 95 (uncontained memory error)" in report["gpu-2"].message
        ill = [(f"{settings.driver}/unhealthy", "needs-gpu-reset", "NoSchedule")]
        await until(lambda: tainted(server) == {"gpu-2": ill})
        machine.write(2, "recovery", "0")
        await heard(reports, [HEALTHY] * 4)
        await until(lambda: tainted(server) == {})


class WatchedCards(SimulatedInventory):
    """Cards with hardware that can be asked."""

    hardware = Hardware()

    def health(self, _cards: tuple[Card, ...]) -> HealthSource:
        """The line to it."""
        return self.hardware.connect()


@pytest.mark.parametrize(
    ("kind", "state"), [(SimulatedInventory, UNKNOWN), (WatchedCards, HEALTHY)]
)
async def test_an_inventory_that_can_be_asked_is_watched(
    server: ApiServer, settings: NodeSettings, kind: type[SimulatedInventory], state: int
) -> None:
    """Of cards of another one the kubelet is told that nobody knows."""
    hardware = msgspec.structs.replace(settings, simulate="")
    async with (
        serving(server, hardware, kind("4xT4", NODE)),
        register(Path(settings.registry_dir)) as kubelet,
    ):
        await heard(kubelet.health(), [state] * 4)
