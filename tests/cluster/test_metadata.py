"""Containers on a real cluster read from files which devices they have (KEP-5304)."""

import json
from typing import Any

import pytest

from tests.cluster import workloads
from tests.cluster.api import Object
from tests.cluster.site import Site, attribute

pytestmark = pytest.mark.cluster

_FOLDER = "/var/run/kubernetes.io/dra-device-attributes"
_MARK = "FILE="
# Every file as one line; then as all test containers do.
_SCRIPT = f"cd {_FOLDER} && for f in $(find . -type f); do echo {_MARK}$f; cat $f; done; "


def reading(name: str, *claims: Object) -> Object:
    """A container that shows the files, has no rights and cannot write."""
    made = workloads.container(name, claims=list(claims))
    made["command"] = ["sh", "-c", _SCRIPT + workloads.SCRIPT]
    made["securityContext"] = {"runAsUser": 65534, "readOnlyRootFilesystem": True}
    return made


def files(site: Site, pod: str, container: str) -> dict[str, list[Any]]:
    """The objects in every file that a container has shown, by its path."""
    found: dict[str, list[Any]] = {}
    path = ""
    for line in site.api.log(pod, container).splitlines():
        if line.startswith(_MARK):
            path = line.removeprefix(_MARK).removeprefix("./")
            found[path] = []
        elif line.startswith("{"):
            found[path].append(json.loads(line))
    return found


def test_containers_read_their_devices(site: Site) -> None:
    """One for each request that the container uses, by the name that its author knows."""
    requests = [workloads.request("big", index=0), workloads.request("small", index=2)]
    site.api.create("claims", workloads.claim("direct", *requests))
    site.api.create("templates", workloads.template("made", workloads.request(index=3)))
    whole = reading("whole", {"name": "mine"}, {"name": "theirs"})
    part = reading("part", {"name": "theirs", "request": "small"})
    pod = workloads.pod("reader", whole, part, node="t4")
    pod["spec"]["resourceClaims"] = [
        {"name": "mine", **workloads.made_from("made")},
        {"name": "theirs", **workloads.existing("direct")},
    ]
    site.run(pod)
    environment = site.environment("reader", "whole")
    suffix = "gpu.quadrant.dev-metadata.json"
    small = f"resourceclaims/direct/small/{suffix}"
    seen = files(site, "reader", "whole")
    assert set(seen) == {
        small,
        f"resourceclaims/direct/big/{suffix}",
        f"resourceclaimtemplates/mine/gpu/{suffix}",
    }
    site.environment("reader", "part")
    assert files(site, "reader", "part") == {small: seen[small]}
    told = {
        attribute(device, "uuid")
        for objects in seen.values()
        for device in objects[0]["requests"][0]["devices"]
    }
    assert len(told) == 3
    devices = [text for name, text in environment.items() if name.startswith("QUADRANT_DEVICE_")]
    assert all(any(f"uuid={uuid}," in text for text in devices) for uuid in told)
    [newest, _] = seen[small]
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    claim = site.api.get("claims", "direct")
    assert claim is not None
    assert newest["metadata"]["uid"] == claim["metadata"]["uid"]
