"""The two-by-two on a real cluster: what the containers themselves say of their cards."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import history
from tests.cluster.site import Site, attribute, uuids
from tests.cluster.workloads import SCRIPT

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "two-by-two"
# Pods per node and cards per node, sorted: the node axis and the GPU axis.
EXPECTED = {
    "a": ([4], [{1, 2}]),
    "b": ([2, 2], [{1}, {1}]),
    "c": ([4], [{4}]),
    "d": ([2, 2], [{2}, {2}]),
}


@pytest.mark.parametrize("mode", EXPECTED)
def test_mode(site: Site, mode: str) -> None:
    """Nodes and cards are used as the two annotations say, and nobody sees anything else."""
    (manifest,) = EXAMPLES.glob(f"{mode}-*.yaml")
    deployment = _with_image(site, yaml.safe_load(manifest.read_text()))
    site.api.create("deployments", deployment)
    names = list(_pods(site, deployment["metadata"]["name"], 4))
    site.running(*names)

    published = history.devices(site.api.list("slices"))
    seen = {}
    for name in names:
        (device,) = site.devices_of(name)
        environment = site.environment(name)
        assert uuids(environment) == [attribute(published[device], "uuid")]
        assert environment["CUDA_DEVICE_MEMORY_LIMIT_0"] == "7500m"
        assert device[0] == site.node_of(name)
        seen[name] = device
    _judge_mode(mode, seen)
    if mode == "a":
        assert len(set(seen.values())) == (1 + (next(iter(seen.values()))[0] == "t4"))


def _judge_mode(mode: str, seen: dict[str, tuple[str, str]]) -> None:
    pods, cards = EXPECTED[mode]
    per_node = Counter(node for node, _ in seen.values())
    assert sorted(per_node.values()) == pods
    used = [len({device for one, device in seen.values() if one == node}) for node in per_node]
    assert all(count in possible for count, possible in zip(used, cards, strict=True))


def _with_image(site: Site, deployment: dict[str, Any]) -> dict[str, Any]:
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        container["image"] = site.state["image"]
        container["imagePullPolicy"] = "Never"
        container["command"] = ["sh", "-c", SCRIPT]
    return deployment


def _pods(site: Site, app: str, count: int) -> Iterator[str]:
    def found() -> list[str]:
        listed = site.api.list("pods", labelSelector=f"app={app}")
        return [str(pod["metadata"]["name"]) for pod in listed]

    site.wait(f"{count} pods of {app}", lambda: len(found()) == count)
    yield from found()
