"""The node plugin is replaced and killed while the kubelet calls it: no pod suffers for good."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.node.faults import FaultPoint
from driver.node.state.checkpoint import drop, put
from driver.node.state.store import ClaimStore
from hack.deployment import Part
from tests.cluster import workloads
from tests.cluster.plugins import away, plugin, registered, running
from tests.cluster.site import Site
from tests.cluster.workloads import Object, container, made_from, pod, request, share, template
from tests.node.builders import prepared
from tests.node.versions import written_by_the_next

pytestmark = pytest.mark.cluster

NODE = "t4"
# A card that can be cut up, so that all steps of preparing are gone through.
_CUT = ("--simulate=2xA100-SXM4-40GB", "--mig=dynamic")
# By this a container's process is found.
_STUBBORN = "quadrant-stubborn"
# The journal is written anew after so many lines (driver.node.state.store).
_NEARLY_FULL = 252


def _events(site: Site, name: str, reason: str) -> list[str]:
    """What was told of a pod for this reason."""
    return [
        event.get("note") or event.get("message", "")
        for event in site.api.list("events")
        if (event.get("regarding") or event.get("involvedObject", {})).get("name") == name
        and event.get("reason") == reason
    ]


def test_a_rolling_update_under_pods_that_come_and_go(site: Site) -> None:
    """Twice, pods starting and ending all through it: none of them is told of any trouble."""
    site.api.create("templates", template("share", request(**share(memory="1Gi"))))
    old, seen = site.deployment.nodes[NODE], [0]

    def come_and_go(count: int) -> list[str]:
        names = [f"p{seen[0] + n}" for n in range(count)]
        seen[0] += count
        for name in names:
            site.api.create("pods", pod(name, claims={"gpu": made_from("share")}, node=NODE))
        return names

    site.run(pod("long", claims={"gpu": made_from("share")}, node=NODE))
    before = site.pod("long")["status"]["containerStatuses"][0]["containerID"]
    names = come_and_go(3)
    for uid in ("11111111", "22222222"):
        new = plugin(site, NODE, f"--pod-uid={uid}", name=uid)
        new.start()
        names += come_and_go(2)
        registered(site, new)
        names += come_and_go(2)
        for name in names[:3]:
            site.api.delete("pods", name)
        gone, names = names[:3], names[3:]
        old.stop()
        names += come_and_go(2)
        site.running(*names)
        site.delete(*gone)
        old = new
    try:
        assert [e for n in range(seen[0]) for e in _events(site, f"p{n}", "FailedPrepare")] == []
        told = [_events(site, f"p{n}", "FailedPrepareDynamicResources") for n in range(seen[0])]
        assert [event for events in told for event in events] == []
        status = site.pod("long")["status"]["containerStatuses"][0]
        assert (status["containerID"], status["restartCount"]) == (before, 0)
        site.delete(*names, "long")
        assert site.cdi_files() == []
    finally:
        site.deployment.nodes[NODE].start()
        registered(site, site.deployment.nodes[NODE])
        old.stop()


def test_a_downgrade_under_running_pods(site: Site) -> None:
    """What a newer plugin has written is worked with and kept; no container notices."""
    site.api.create("templates", template("share", request(**share(memory="1Gi"))))
    names = [f"old-{n}" for n in range(3)]
    site.run(*(pod(name, claims={"gpu": made_from("share")}, node=NODE) for name in names))
    own = site.deployment.nodes[NODE]
    (known,) = (one for one in site.state["nodes"] if one["name"] == NODE)
    journal = Path(known["plugins_dir"]) / workloads.CLASS / "claims.journal"
    own.stop()
    newer = [written_by_the_next(line) for line in journal.read_bytes().splitlines()]
    journal.write_bytes(b"\n".join([*newer, b""]))
    own.start()
    registered(site, own)
    site.run(pod("new", claims={"gpu": made_from("share")}, node=NODE))
    kept = journal.read_bytes().splitlines()
    assert set(newer) <= set(kept), "byte for byte, for the upgrade that follows"
    statuses = [site.pod(name)["status"]["containerStatuses"][0] for name in names]
    assert [status["restartCount"] for status in statuses] == [0, 0, 0]
    site.delete(*names, "new")
    site.wait("no claim to be held", lambda: site.cdi_files() == [])


def test_slices_that_a_starting_kubelet_deletes_are_back(site: Site) -> None:
    """It knows no plugin yet and takes away what it finds; the same devices are put back."""

    def published() -> dict[str, Object]:
        found = [one for one in site.api.list("slices") if one["spec"]["pool"]["name"] == NODE]
        return {one["metadata"]["uid"]: one["spec"]["devices"] for one in found}

    before = published()
    site.restart(f"kubelet/{NODE}")
    site.wait("the slices to be deleted", lambda: not set(published()) & set(before))
    site.wait("them to be back", lambda: list(published().values()) == list(before.values()))


@pytest.fixture
def parts(site: Site) -> Iterator[None]:
    """A class and a template for parts of cards."""
    driver = f'device.driver == "{workloads.CLASS}"'
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "parts"},
        "spec": {
            "selectors": [
                {
                    "cel": {
                        "expression": f"{driver} && "
                        f'device.attributes["{workloads.CLASS}"].type == "mig"'
                    }
                }
            ]
        },
    }
    site.deployment.apply(body)
    wanted = {"name": "gpu", "exactly": {"deviceClassName": "parts"}}
    site.api.create("templates", template("part", wanted))
    yield
    site.deployment.kubectl("delete", "deviceclass", "parts")


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("point", FaultPoint)
def test_killed_at_every_step(site: Site, point: FaultPoint, tmp_path: Path) -> None:
    """The kubelet asks again: the pod runs, or is gone, and nothing is left of it."""
    (node,) = (one for one in site.state["nodes"] if one["name"] == NODE)
    data = Path(node["plugins_dir"]) / workloads.CLASS
    marker = tmp_path / "killed"
    journal = data / "claims.journal"
    armed = ("-m", "tests.cluster.killed", point.name, str(marker))
    first = plugin(site, NODE, *_CUT, name=point.name, program=armed)
    with away(site, NODE):
        if point is FaultPoint.COMPACTED:
            _fill(journal)
        _until_killed(site, first, marker)
        with running(site, plugin(site, NODE, *_CUT, name="healed")):
            found = site.api.get("pods", "one")
            if found is not None and not found["metadata"].get("deletionTimestamp"):
                site.running("one")
            site.delete("one")
            site.wait("the claim to be gone", lambda: not site.api.list("claims"))
            assert site.cdi_files() == []
            assert not list((data / "mig").glob("*")), "no part is noted as made"
            assert _held(journal) == []


def _until_killed(site: Site, first: Part, marker: Path) -> None:
    """Let a pod come, and go if that is not enough, until the plugin has killed itself."""
    with running(site, first):
        site.api.create("pods", pod("one", claims={"gpu": made_from("part")}, node=NODE))
        site.wait(
            lambda: f"the pod to run, or the plugin to die:\n{first.tail()}",
            lambda: marker.exists() or _runs(site, "one"),
        )
        if not marker.exists():
            site.api.delete("pods", "one")
            site.wait(lambda: f"the plugin to die:\n{first.tail()}", marker.exists)


def _runs(site: Site, name: str) -> bool:
    return bool(site.pod(name).get("status", {}).get("phase") == "Running")


def _fill(journal: Path) -> None:
    """Let so much have happened that the next changes make the journal be written anew."""
    store = ClaimStore(journal)
    entry = prepared(7)
    while journal.read_bytes().count(b"\n") < _NEARLY_FULL:
        store.locked(lambda _book: put(entry))
    store.locked(lambda _book: drop(entry.uid))
    store.close()


def _held(journal: Path) -> list[str]:
    store = ClaimStore(journal)
    held: list[str] = []
    store.locked(lambda book: held.extend(claim.uid for claim in book.claims()))
    store.close()
    return held


def _taints(site: Site, device: str) -> set[str]:
    return {
        taint["key"]
        for part in site.api.list("slices")
        if part["spec"]["pool"]["name"] == NODE
        for one in part["spec"].get("devices", [])
        if one["name"] == device
        for taint in one.get("taints", [])
    }


def test_a_card_of_a_pod_deleted_by_force_is_kept_and_tainted(site: Site) -> None:
    """Its container runs on: who was sent there waits, nobody else is sent, later all is well."""
    site.api.create("templates", template("whole", request(index=1)))
    uses: Object = {"gpu": made_from("whole")}
    stubborn = container(claims=[{"name": "gpu"}])
    stubborn["command"] = ["sh", "-c", f"{workloads.SCRIPT} # {_STUBBORN}"]
    site.run(pod("first", stubborn, claims=uses, node=NODE))
    with _kept_alive(_STUBBORN):
        _force_delete(site, "first")
        site.api.create("pods", pod("second", claims=uses, node=NODE))
        site.wait(
            "the second pod to be refused",
            lambda: any(
                "held by claim" in told
                for told in _events(site, "second", "FailedPrepareDynamicResources")
            ),
        )
        taint = f"{workloads.CLASS}/occupied"
        site.wait("the card to be tainted", lambda: taint in _taints(site, "gpu-1"))
        _force_delete(site, "second")
        site.api.create("pods", pod("third", claims=uses, node=NODE))
        site.wait(
            lambda: f"the third pod to find no card: {site.condition('third')}",
            lambda: site.condition("third")[0] == "Unschedulable",
        )
        assert taint in _taints(site, "gpu-1")
    site.wait("the taint to go", lambda: taint not in _taints(site, "gpu-1"))
    site.running("third")


@contextlib.contextmanager
def _kept_alive(words: str) -> Iterator[None]:
    """The container whose command has these words cannot be ended: who would do it is frozen."""
    (process,) = (
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and _command(folder).endswith(words)
    )
    # The parent of a container's first process is its shim.
    status = Path(f"/proc/{process}/status").read_text()
    (shim,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
    os.kill(shim, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(shim, signal.SIGCONT)


def _command(process: Path) -> str:
    try:
        arguments = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return arguments[-1].decode(errors="replace") if arguments[0].endswith(b"sh") else ""


def _force_delete(site: Site, name: str) -> None:
    site.deployment.kubectl("delete", "pod", name, "--force", "--grace-period=0")
    site.wait("its claim to be gone", lambda: not site.api.list("claims"))
