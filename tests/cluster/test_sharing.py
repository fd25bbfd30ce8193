"""Four ways of using a card, prepared and unprepared by a real kubelet, on the fake NVML.

Each way runs the manifest that users find in `examples/sharing`.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from driver.model.gpuconfig import API_VERSION, KIND
from hack.deployment import Part
from tests.cluster import history
from tests.cluster.api import RefusedError
from tests.cluster.plugins import away, plugin, running
from tests.cluster.site import ROOT, Site, attribute
from tests.cluster.workloads import (
    CLASS,
    END,
    IMAGE,
    Object,
    claim,
    container,
    existing,
    made_from,
    pod,
    request,
    share,
    template,
)
from tests.node.nvml import fake

pytestmark = pytest.mark.cluster

NODE = "t4"
MIG_CLASS = "mig.gpu.quadrant.dev"
# What a container sees: its environment, and what is mounted for it.
SCRIPT = (
    'env; echo "PIPES=$(ls /tmp/nvidia-mps 2>/dev/null | tr "\\n" " ")"; '
    'echo "PRELOAD=$(cat /etc/ld.so.preload 2>/dev/null)"; '
    'echo "STATE=$(ls -d /usr/local/vgpu/* 2>/dev/null | tr "\\n" " ")"; '
    f"echo {END}; trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"
)


class Lab(NamedTuple):
    """The site with a node whose cards are those of the fake library."""

    site: Site
    machine: fake.FakeMachine
    mps: Path


@pytest.fixture(scope="module")
def lab(whole_site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two H100, MIG as claims want it, a keeper of MPS daemons, and HAMi-core's files."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    machine = fake.FakeMachine(
        fake.build(tmp_path_factory.mktemp("nvml")),
        tmp_path_factory.mktemp("machine"),
        "h100x2-mig",
    )
    (node,) = (one for one in whole_site.state["nodes"] if one["name"] == NODE)
    # The node's containers must find these folders under the same path.
    folder = Path(node["plugins_dir"]).resolve().parent / "sharing"
    library = folder / "vgpu"
    library.mkdir(parents=True, exist_ok=True)
    (library / "libvgpu.so").write_text("not a library\n")
    (library / "ld.so.preload").write_text("# nothing is preloaded in this test\n")
    variables = ["env", *(f"{name}={value}" for name, value in machine.variables().items())]
    options = ("--simulate=", "--mig=dynamic", f"--mps-dir={folder}/mps")
    told = plugin(whole_site, NODE, *options, f"--hami-core-dir={library}", name="sharing")
    node_plugin = Part(told.name, [*variables, *told._argv], told.log)
    keeper = Part(
        "mps",
        [*variables, sys.executable, "-m", "driver.cli", "mps", f"--mps-dir={folder}/mps"],
        whole_site.deployment.folder / "mps.log",
    )
    for name in ("mig", "mps", "time-slicing"):
        whole_site.deployment.apply_file(ROOT / "deviceclasses" / f"{name}.yaml")
    keeper.start()
    try:
        with away(whole_site, NODE), running(whole_site, node_plugin):
            found = Lab(whole_site, machine, folder / "mps")
            whole_site.wait("its parts", lambda: _counted(found))
            yield found
            assert not node_plugin.crashed
            assert "Traceback" not in node_plugin.log.read_text()
            assert "Traceback" not in keeper.log.read_text()
    finally:
        keeper.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_left(lab: Lab, site: Site) -> Iterator[None]:
    """After each test the cards are as they were, and no daemon or file is left."""
    yield
    site.clear()
    for card in (0, 1):
        assert lab.machine.parts(card) == 0
        assert lab.machine.setting(card, "compute-mode") == "0"
        assert lab.machine.setting(card, "timeslice") == "0"
    assert list(lab.mps.glob("*/state.json")) == []
    assert list((lab.mps / "wanted").iterdir()) == []


def _devices(lab: Lab) -> dict[str, Object]:
    published = history.devices(lab.site.api.list("slices"))
    return {name: device for (pool, name), device in published.items() if pool == NODE}


def _counted(lab: Lab) -> bool:
    """Whether the pool is complete: its counters are written last."""
    return any(s["spec"].get("sharedCounters") for s in lab.site.api.list("slices"))


def example(lab: Lab, name: str) -> list[str]:
    """Create what an example holds, on the node of the lab; its pods, which run."""
    made: list[Object] = []
    for document in yaml.safe_load_all((ROOT / "examples/sharing" / f"{name}.yaml").read_text()):
        if document["kind"] == "ResourceClaimTemplate":
            lab.site.api.create("templates", document)
        else:
            made.append(_here(document))
    return lab.site.run(*made)


def _here(pod: Object) -> Object:
    spec = pod["spec"]
    spec["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    spec["terminationGracePeriodSeconds"] = 2
    for one in spec["containers"]:
        one |= {"image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", SCRIPT]}
    return pod


def test_whole_cards_and_all_parts_are_published(lab: Lab) -> None:
    """Parts with what they have and draw; the counters in a slice of their own."""
    devices = _devices(lab)
    assert {"gpu-0", "gpu-1", "gpu-0-mig-1g10gb-6", "gpu-1-mig-7g80gb-0"} <= set(devices)
    part = devices["gpu-0-mig-3g40gb-4"]
    assert attribute(part, "profile") == "3g.40gb"
    assert attribute(part, "parentUUID") == attribute(devices["gpu-0"], "uuid")
    assert part["capacity"]["memory"]["value"] == "40448Mi"
    (draws,) = part["consumesCounters"]
    assert draws["counterSet"] == "gpu-0-counter-set"
    assert draws["counters"]["memory-slice-7"] == {"value": "1"}
    slices = [s["spec"] for s in lab.site.api.list("slices") if s["spec"]["nodeName"] == NODE]
    counted = [spec for spec in slices if spec.get("sharedCounters")]
    assert len(counted) == 1
    assert not counted[0].get("devices")
    newest = max(spec["pool"]["generation"] for spec in slices)
    assert {(s["pool"]["generation"], s["pool"]["resourceSliceCount"]) for s in slices} == {
        (newest, len(slices))
    }


def test_whole(lab: Lab) -> None:
    """A card of its own is not in MIG mode, even where it was before."""
    (name,) = example(lab, "whole")
    seen = lab.site.environment(name)
    uuid = attribute(_devices(lab)[lab.site.devices_of(name)[0][1]], "uuid")
    assert seen["NVIDIA_VISIBLE_DEVICES"] == uuid
    assert seen["PIPES"] == seen["PRELOAD"] == ""
    card = int(lab.site.devices_of(name)[0][1].removeprefix("gpu-"))
    assert lab.machine.setting(card, "mig-mode").split()[:1] in (["0"], [])
    lab.site.delete(name)


def test_mig(lab: Lab) -> None:
    """Parts are there while the pod is; each container sees its own."""
    (name,) = example(lab, "mig")
    small, large = (lab.site.environment(name, one) for one in ("small", "large"))
    assert small["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
    assert large["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
    assert small["NVIDIA_VISIBLE_DEVICES"] != large["NVIDIA_VISIBLE_DEVICES"]
    lines = [line for line in large if line.startswith("QUADRANT_DEVICE_")]
    assert len(lines) == 1
    assert large[lines[0]].endswith("profile=3g.40gb")
    assert sorted(lab.machine.parts(card) for card in (0, 1)) == [0, 2]
    lab.site.delete(name)
    assert [lab.machine.parts(card) for card in (0, 1)] == [0, 0]


def test_a_cut_card_is_not_given_whole(lab: Lab) -> None:
    """The scheduler knows it from the counters: the second whole card waits, parts go on."""
    site = lab.site
    example(lab, "mig")
    (cut,) = (card for card in (0, 1) if lab.machine.parts(card))
    for index in (0, 1):
        site.api.create("claims", claim(f"whole-{index}", request(index=index)))
    pods = [pod(f"w{i}", claims={"gpu": existing(f"whole-{i}")}, node=NODE) for i in (0, 1)]
    for one in pods:
        site.api.create("pods", one)
    site.running(f"w{1 - cut}")
    site.wait("the scheduler to say so", lambda: site.condition(f"w{cut}")[0] == "Unschedulable")
    site.delete("parts")
    site.running(f"w{cut}")
    assert lab.machine.parts(cut) == 0
    site.delete("w0", "w1")


def test_a_card_in_use_is_not_cut(lab: Lab) -> None:
    """A share of it is enough: parts wait until the last has gone."""
    site = lab.site
    for index in (0, 1):
        site.claim_card(f"share-{index}", NODE, request(index=index, **share(memory="1Gi")))
    site.running("share-0", "share-1")
    small = {"name": "gpu", "exactly": {"deviceClassName": MIG_CLASS}}
    site.api.create("templates", template("part", small))
    site.api.create("pods", pod("part", claims={"gpu": made_from("part")}, node=NODE))
    site.wait("the scheduler to say so", lambda: site.condition("part")[0] == "Unschedulable")
    site.delete("share-1")
    site.running("part")
    assert [lab.machine.parts(card) for card in (0, 1)] == [0, 1]
    site.delete("part", "share-0")


def test_a_burst_of_parts(lab: Lab) -> None:
    """Exactly as many run as there is room for, on both cards; the others follow when some end."""
    site = lab.site
    expression = f'device.attributes["{CLASS}"].profile == "1g.10gb"'
    small = {"deviceClassName": MIG_CLASS, "selectors": [{"cel": {"expression": expression}}]}
    site.api.create("templates", template("part", {"name": "gpu", "exactly": small}))
    names = [f"part-{number}" for number in range(18)]
    for name in names:
        site.api.create("pods", pod(name, claims={"gpu": made_from("part")}, node=NODE))

    def run() -> list[str]:
        pods = site.api.list("pods")
        return [one["metadata"]["name"] for one in pods if one["status"]["phase"] == "Running"]

    site.wait("14 pods to run", lambda: len(run()) == 14)
    assert [lab.machine.parts(card) for card in (0, 1)] == [7, 7]
    waiting = sorted(set(names) - set(run()))
    site.delete(*run()[:8])
    site.running(*waiting)
    left = [name for name in names if site.api.get("pods", name)]
    uuids = {site.environment(name)["NVIDIA_VISIBLE_DEVICES"] for name in left}
    assert len(uuids) == len(left) == 10
    site.delete(*left)


def test_parts_by_preference_in_init_and_main_containers(lab: Lab) -> None:
    """An alternative of a prioritised list, used by an init container first."""
    kinds = {"huge": "9g.900gb", "medium": "2g.20gb"}
    alternatives = [
        {
            "name": name,
            "deviceClassName": MIG_CLASS,
            "selectors": [
                {"cel": {"expression": f'device.attributes["{CLASS}"].profile == "{profile}"'}}
            ],
        }
        for name, profile in kinds.items()
    ]
    lab.site.api.create(
        "templates", template("choice", {"name": "gpu", "firstAvailable": alternatives})
    )
    uses = [{"name": "gpu", "request": "gpu"}]
    first = {**container("first", claims=uses), "command": ["sh", "-c", "env"]}
    both = pod(
        "both",
        container(claims=uses),
        claims={"gpu": made_from("choice")},
        node=NODE,
        initContainers=[first],
    )
    lab.site.run(both)
    seen = lab.site.environment("both")
    assert seen["NVIDIA_VISIBLE_DEVICES"].startswith("MIG-")
    assert f"NVIDIA_VISIBLE_DEVICES={seen['NVIDIA_VISIBLE_DEVICES']}" in lab.site.api.log(
        "both", "first"
    )
    lab.site.delete("both")


def test_time_slicing(lab: Lab) -> None:
    """Both pods are on one card, whose rhythm is set until the last has left."""
    names = example(lab, "time-slicing")
    (card,) = {lab.site.devices_of(name)[0][1] for name in names}
    index = int(card.removeprefix("gpu-"))
    assert lab.machine.setting(index, "timeslice") == "3"
    lab.site.delete(names[0])
    assert lab.machine.setting(index, "timeslice") == "3"
    lab.site.delete(names[1])
    assert lab.machine.setting(index, "timeslice") == "0"


def test_mps(lab: Lab) -> None:
    """One daemon for both pods; each has its limits and finds the daemon's socket."""
    names = example(lab, "mps")
    (card,) = {lab.site.devices_of(name)[0][1] for name in names}
    index = int(card.removeprefix("gpu-"))
    for name in names:
        seen = lab.site.environment(name)
        assert seen["CUDA_MPS_PIPE_DIRECTORY"] == "/tmp/nvidia-mps"  # noqa: S108
        assert seen["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=4096M"
        assert seen["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "30"
        assert "control" in seen["PIPES"].split()
        assert seen["PRELOAD"] == ""
    assert lab.machine.setting(index, "compute-mode") == "3"
    (log,) = lab.mps.glob("*/log/control.log")
    told = log.read_text()
    assert "set_default_active_thread_percentage 30" in told
    assert "set_default_device_pinned_mem_limit 0 4096M" in told
    lab.site.delete(names[0])
    assert lab.machine.setting(index, "compute-mode") == "3"
    lab.site.delete(names[1])
    assert lab.machine.setting(index, "compute-mode") == "0"


def test_shares(lab: Lab) -> None:
    """HAMi-core's library is in the container, with limits and a state that goes with the claim."""
    assert attribute(_devices(lab)["gpu-0"], "limits") == "hami-core"
    (name,) = example(lab, "shares")
    seen = lab.site.environment(name)
    assert seen["CUDA_DEVICE_MEMORY_LIMIT_0"] == "4096m"
    assert seen["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    assert seen["CUDA_DEVICE_MEMORY_SHARED_CACHE"] == "/usr/local/vgpu/state/region.cache"
    assert seen["PRELOAD"] == "# nothing is preloaded in this test"
    assert seen["STATE"].split() == ["/usr/local/vgpu/libvgpu.so", "/usr/local/vgpu/state"]
    lab.site.delete(name)


def test_ways_that_do_not_go_together_are_told_to_the_pod(lab: Lab) -> None:
    """The second way waits with the reason, and starts when the first has ended."""
    site = lab.site
    example(lab, "mps")
    (card,) = {site.devices_of(name)[0][1] for name in ("mps-a", "mps-b")}
    index = int(card.removeprefix("gpu-"))
    part = request(index=index, capacity={"requests": {"memory": "1Gi", "cores": "10"}})
    site.claim_card("plain", NODE, part)
    reason = "a card is used in one way at a time"
    site.wait("the kubelet to say so", lambda: any(reason in text for text in _told(site, "plain")))
    site.delete("mps-a", "mps-b")
    site.running("plain")
    site.delete("plain")


def test_a_wrong_configuration_is_refused_when_it_is_written(lab: Lab) -> None:
    """With the place and what was expected there."""
    wrong = claim("wrong", request())
    parameters = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": "long"}},
    }
    wrong["spec"]["devices"]["config"] = [{"opaque": {"driver": CLASS, "parameters": parameters}}]
    with pytest.raises(RefusedError) as refused:
        lab.site.api.create("claims", wrong)
    assert "spec.devices.config[0].opaque.parameters" in str(refused.value)
    assert "$.sharing.timeSlicing.interval" in str(refused.value)
    parameters["sharing"] = {"strategy": "TimeSlicing", "timeSlicing": {"interval": "Long"}}
    lab.site.api.create("claims", wrong)


def _told(site: Site, name: str) -> list[str]:
    return [
        event.get("note") or event.get("message", "")
        for event in site.api.list("events")
        if (event.get("regarding") or event.get("involvedObject", {})).get("name") == name
    ]
