"""The whole plugin under each way of using a card, on simulated cards and on the fake library."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
from msgspec import structs

from driver.node.mps.folder import MpsFolder
from driver.node.mps.keeper import Keeper
from driver.node.nvidia.control import NvmlControl
from driver.node.publish import SLICES
from driver.node.settings import NodeSettings
from driver.node.sharing import daemons
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.node.builders import UIDS, claim, mps, ref, result
from tests.node.conftest import Boot
from tests.node.kubelet import register
from tests.node.test_plugin import folder, put, server, serving, settings
from tests.node.test_publish import until

__all__ = ["folder", "server", "settings"]

PART = claim(0, result("gpu-1-mig-3g20gb-4"), result("gpu-1-mig-1g5gb-0", "small"))
SHARE = claim(0, result("gpu-2", memory="4Gi", cores="30"), config=[mps()])


@pytest.fixture
def cutting(settings: NodeSettings) -> NodeSettings:
    """Two A100 in parts."""
    return structs.replace(settings, simulate="2xA100-SXM4-40GB", mig="dynamic")


def devices(server: ApiServer) -> dict[str, Any]:
    """What is published, by name."""
    found = server.objects.in_collection(SLICES)
    return {one["name"]: one for item in found for one in item["spec"].get("devices", [])}


def counters(server: ApiServer) -> list[str]:
    """The counter sets that are published."""
    found = server.objects.in_collection(SLICES)
    return [one["name"] for item in found for one in item["spec"].get("sharedCounters", [])]


def environment(settings: NodeSettings) -> dict[str, str]:
    """All variables of the claim's CDI file."""
    (path,) = Path(settings.cdi_dir).glob(f"*{UIDS[0]}.json")
    edits = [one["containerEdits"] for one in json.loads(path.read_bytes())["devices"]]
    return dict(line.split("=", 1) for one in edits for line in one["env"])


async def test_parts_are_made_for_a_claim_and_removed_after_it(
    server: ApiServer, cutting: NodeSettings
) -> None:
    """Published with their counters; there while the claim is prepared, over a restart too."""
    put(server, PART)
    state = Path(str(cutting.data_dir())) / "simulated"
    async with serving(server, cutting):
        await until(lambda: bool(counters(server)))
        assert counters(server) == ["gpu-0-counter-set", "gpu-1-counter-set"]
        assert {"gpu-0", "gpu-1-mig-3g20gb-4", "gpu-1-mig-1g5gb-0"} <= set(devices(server))
        async with register(Path(cutting.registry_dir)) as kubelet:
            answers = await kubelet.prepare(ref(0))
        assert answers[UIDS[0]].error == ""  # type: ignore[attr-defined]
    made = [json.loads(path.read_bytes())["instances"] for path in state.iterdir()]
    assert [sorted(one["profile"] for one in card) for card in made] == [["1g.5gb", "3g.20gb"]]
    assert environment(cutting)["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
    # Whatever is wanted of the cards now, what a claim has stays published.
    async with serving(server, structs.replace(cutting, mig="off")):
        await until(lambda: "gpu-0-mig-1g5gb-0" not in devices(server))
        assert "gpu-1-mig-3g20gb-4" in devices(server)
        async with register(Path(cutting.registry_dir)) as kubelet:
            await kubelet.unprepare(ref(0))
    assert ["instances" in json.loads(path.read_bytes()) for path in state.iterdir()] == [False]


@pytest.mark.parametrize("why", ["dropped", "refused"])
async def test_where_counters_are_not_kept_cards_stay_whole(
    server: ApiServer, cutting: NodeSettings, why: str
) -> None:
    """Kubernetes 1.34 drops them by default, and wants them in the same slice otherwise."""

    def without_counters(_old: Any, new: Any) -> Any:
        for item in new["spec"].get("devices", []):
            drawn = item.pop("consumesCounters", None)
            if drawn and why == "refused":
                raise Refusal(422, "Invalid", "counterSet: not found in this slice")
        return new

    server.objects.admission[SLICES] = without_counters
    with structlog.testing.capture_logs() as logs:
        async with serving(server, cutting):
            await until(lambda: bool(devices(server)))
    assert list(devices(server)) == ["gpu-0", "gpu-1"]
    said = [log for log in logs if "cards are published whole only" in log["event"]]
    assert len(said) == 1


@asynccontextmanager
async def keeping(mps_dir: Path) -> AsyncIterator[None]:
    """A keeper of MPS daemons."""
    task = asyncio.ensure_future(Keeper(MpsFolder(mps_dir), NvmlControl()).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_claim_by_mps_waits_for_its_daemon(
    server: ApiServer, settings: NodeSettings, boot: Boot, folder: Path
) -> None:
    """Without a keeper it is told so; with one the daemon has its limits before the answer."""
    machine = boot("t4x4")
    put(server, SHARE)
    told = structs.replace(settings, simulate="", mps_dir=f"{folder}/mps")
    async with serving(server, told), register(Path(told.registry_dir)) as kubelet:
        refused = (await kubelet.prepare(ref(0)))[UIDS[0]]
        assert "no keeper of MPS daemons runs" in refused.error  # type: ignore[attr-defined]
        async with keeping(folder / "mps"):
            answer = (await kubelet.prepare(ref(0)))[UIDS[0]]
            assert answer.error == ""  # type: ignore[attr-defined]
            (log,) = (folder / "mps").glob("*/log/control.log")
            assert "set_default_device_pinned_mem_limit 0 4096M" in log.read_text()
            found = environment(told)
            assert found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4096M"
            assert found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "30"
            done = (await kubelet.unprepare(ref(0)))[UIDS[0]]
            assert done.error == ""  # type: ignore[attr-defined]
            assert (machine.state / "card-2" / "compute-mode").read_text().strip() == "0"
            assert list((folder / "mps").glob("*/state.json")) == []


async def test_a_daemon_that_does_not_come_is_told_in_time(
    server: ApiServer,
    settings: NodeSettings,
    boot: Boot,
    *,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what keeps it; unprepare does not wait for a keeper that is gone."""
    monkeypatch.setattr(daemons, "PATIENCE_S", 2.0)
    monkeypatch.setattr(daemons.Daemons.__init__, "__kwdefaults__", {"patience": 2.0})
    machine = boot("t4x4")
    machine.errors(2, {"nvmlDeviceSetComputeMode": 4})
    put(server, SHARE)
    told = structs.replace(settings, simulate="", mps_dir=f"{folder}/mps")
    async with serving(server, told), register(Path(told.registry_dir)) as kubelet:
        async with keeping(folder / "mps"):
            refused = (await kubelet.prepare(ref(0)))[UIDS[0]]
            assert "compute mode exclusive-process" in refused.error  # type: ignore[attr-defined]
        done = (await kubelet.unprepare(ref(0)))[UIDS[0]]
        assert done.error == ""  # type: ignore[attr-defined]
        assert list((folder / "mps" / "wanted").iterdir()) == []
