"""`status.devices` of claims: what is written, and that nobody waits for it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from driver.model.api import ObjectMeta
from driver.node.devicestatus import StatusOfClaim, patch
from driver.node.health.card import CardHealth, Rules, after_reading, after_xid
from driver.node.health.port import Reading
from driver.node.held import Partition, PreparedClaim
from driver.node.settings import NodeSettings
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.node.builders import DRIVER, NODE, UIDS, claim, facts, held, prepared, ref, result
from tests.node.health.test_reports import fault
from tests.node.kubelet import register
from tests.node.test_plugin import CLAIMS, folder, put, server, serving, settings
from tests.node.test_publish import until

__all__ = ["folder", "server", "settings"]

WELL = after_reading(CardHealth(), Reading(index=0), 50, Rules())
ILL = after_xid(WELL, 79, 60, Rules())
OTHER = {"driver": "net.example.com", "pool": "p", "device": "d", "data": {"x": [1.50]}}


def found(*devices: Any) -> StatusOfClaim:
    """The claim as the API server has it."""
    status = msgspec.json.encode({"devices": devices})
    read = msgspec.json.decode(status, type=type(StatusOfClaim(metadata=ObjectMeta()).status))
    return StatusOfClaim(metadata=ObjectMeta(uid=UIDS[0], resource_version="7"), status=read)


def written(
    wanted: PreparedClaim, *devices: Any, cards: dict[str, CardHealth] | None = None, now: float = 0
) -> list[Any] | None:
    """What is sent as the list of devices; None when nothing is."""
    cards = {"gpu-0": WELL} if cards is None else cards
    body = patch(wanted, found(*devices), cards, driver=DRIVER, now=now)
    if body is None:
        return None
    sent = json.loads(body)
    assert sent["metadata"] == {"uid": UIDS[0], "resourceVersion": "7"}
    assert set(sent) == {"metadata", "status"}
    assert set(sent["status"]) == {"devices"}
    return list(sent["status"]["devices"])


def test_an_entry() -> None:
    """All that people and other controllers want to know of a card."""
    card = facts().cards["gpu-0"]
    assert written(prepared(0, [held("gpu-0", share="s-1")]), now=90) == [
        {
            "driver": DRIVER,
            "pool": NODE,
            "device": "gpu-0",
            "shareID": "s-1",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Healthy",
                    "lastTransitionTime": "1970-01-01T00:01:30Z",
                }
            ],
            "data": {"uuid": card.uuid, "index": 0, "model": card.product_name},
        }
    ]


def test_a_part_names_its_card() -> None:
    """Its health is that of the card."""
    part = structs.replace(
        held("gpu-0"),
        device="gpu-0-mig-1g.5gb-0",
        uuid="MIG-1",
        partition=Partition(parent="GPU-1", profile="1g.5gb", start=0, size=1),
    )
    [entry] = written(prepared(0, [part]), cards={"gpu-0": ILL}) or []
    assert (entry["data"]["uuid"], entry["data"]["card"]) == ("MIG-1", "GPU-1")
    [condition] = entry["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unhealthy")
    assert "XID 79" in condition["message"]


def test_what_is_right_is_not_written_again() -> None:
    """In whatever order; entries of other drivers are theirs, byte for byte."""
    wanted = prepared(0, [held("gpu-0", "a"), held("gpu-0", "b")])
    entries = written(wanted, OTHER)
    assert entries is not None
    assert entries[0] == OTHER
    assert len(entries) == 2, "two requests, one device"
    assert written(wanted, entries[1], OTHER, now=99) is None


def test_the_time_is_that_of_the_change() -> None:
    """A message that changes is no transition."""
    wanted = prepared(0, [held("gpu-0")])
    [well] = written(wanted, now=60) or []
    [ill] = written(wanted, well, cards={"gpu-0": ILL}, now=120) or []
    assert ill["conditions"][0]["lastTransitionTime"] == "1970-01-01T00:02:00Z"
    worse = after_xid(ILL, 48, 130, Rules())
    [later] = written(wanted, ill, cards={"gpu-0": worse}, now=180) or []
    assert later["conditions"][0]["lastTransitionTime"] == "1970-01-01T00:02:00Z"
    assert "XID 48" in later["conditions"][0]["message"]


def test_a_process_that_has_not_looked_yet_changes_nothing() -> None:
    """Only a claim that has no word yet is told that nobody knows."""
    wanted = prepared(0, [held("gpu-0")])
    [ill] = written(wanted, cards={"gpu-0": ILL}) or []
    assert written(wanted, ill, cards={"gpu-0": CardHealth()}) is None
    [new] = written(wanted, cards={"gpu-0": CardHealth()}) or []
    assert new["conditions"][0]["status"] == "Unknown"


def test_entries_that_somebody_spoilt_are_made_right() -> None:
    """Those of devices that the claim does not have are the API server's to drop."""
    wanted = prepared(0, [held("gpu-0")])
    [right] = written(wanted) or []
    spoilt = {**right, "conditions": [{"type": 3}]}
    stale = {**right, "device": "gpu-3"}
    assert written(wanted, spoilt, stale, OTHER) == [stale, OTHER, right]


def entries(server: ApiServer, number: int = 0) -> list[Any]:
    """What the claim in the cluster says."""
    found = server.get(CLAIMS, ref(number).name, "default")
    return list(found["status"].get("devices", ()))


def ready(server: ApiServer, number: int = 0) -> list[str]:
    """The conditions of a claim's devices."""
    return [entry["conditions"][0]["status"] for entry in entries(server, number)]


async def test_claims_follow_the_health_of_their_cards(
    server: ApiServer, settings: NodeSettings
) -> None:
    """From prepare on, over illness, recovery and a restart."""
    put(server, claim(0, result("gpu-0"), result("gpu-1", "b")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0))
        await until(lambda: ready(server) == ["True", "True"])
        fault(settings, "gpu-1 xid 79")
        await until(lambda: ready(server) == ["True", "False"])
        fault(settings)
        await until(lambda: ready(server) == ["True", "True"])
    fault(settings, "gpu-0 remap")
    async with serving(server, settings):
        await until(lambda: ready(server) == ["False", "True"])


async def test_prepare_does_not_suffer_from_a_status_that_is_refused(
    server: ApiServer, settings: NodeSettings
) -> None:
    """The answer comes first; the status when the server takes it."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-1")))
    refusals = [
        Refusal(409, "Conflict", "changed"),
        Refusal(409, "Conflict", "changed"),
        Refusal(500, "InternalError", "ill"),
    ]

    def refuse(_old: Any, new: Any) -> Any:
        if refusals and new["status"].get("devices"):
            raise refusals.pop(0)
        return new

    server.objects.admission[CLAIMS] = refuse
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        answers: Any = await kubelet.prepare(ref(0), ref(1))
        assert [answer.error for answer in answers.values()] == ["", ""]
        await until(lambda: ready(server) == ready(server, 1) == ["True"])
    assert not refusals


async def test_a_claim_that_was_replaced_or_deleted_is_left(
    server: ApiServer, settings: NodeSettings
) -> None:
    """What is prepared here is not always what the API server has."""
    put(server, claim(0, result("gpu-0")))
    put(server, claim(1, result("gpu-1")))
    async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
        await kubelet.prepare(ref(0), ref(1))
        await until(lambda: ready(server) == ready(server, 1) == ["True"])
    server.remove(CLAIMS, ref(0).name, "default")
    server.remove(CLAIMS, ref(1).name, "default")
    other = claim(1, result("gpu-1"))
    put(server, structs.replace(other, metadata=structs.replace(other.metadata, uid=UIDS[5])))
    fault(settings, "gpu-1 lost")
    async with serving(server, settings):
        await asyncio.sleep(1)
    assert entries(server, 1) == []
