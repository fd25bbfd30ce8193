"""The files by which programs in a container learn of its devices (KEP-5304)."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from driver.model.names import POD_CLAIM_NAME
from driver.node import claims
from driver.node.containers import cdi
from driver.node.containers.metadata import documents, mounts
from driver.node.held import Metadata, Partition
from driver.node.settings import NodeSettings
from tests.kube.apiserver import ApiServer
from tests.node.builders import (
    CLAIMS,
    DRIVER,
    NODE,
    UIDS,
    claim,
    facts,
    held,
    prepared,
    ref,
    result,
)
from tests.node.kubelet import register
from tests.node.machine import Machine
from tests.node.test_plugin import folder, names_in, put, server, serving, settings

__all__ = ["folder", "server", "settings"]

INSIDE = "/var/run/kubernetes.io/dra-device-attributes"
NODE_FACTS = structs.replace(facts(), metadata_dir="/m")


def objects(document: bytes) -> list[Any]:
    """The objects of a stream."""
    return [json.loads(line) for line in document.splitlines()]


def test_a_document() -> None:
    """The same object in both versions of the format; attributes as in the ResourceSlice."""
    found = claims.entry(ref(0), claim(0, result("gpu-1", "gpu/big", share="s")), NODE_FACTS)
    newest, older = objects(documents(DRIVER, found)["gpu"])
    card = facts().cards["gpu-1"]
    assert newest == {
        "kind": "DeviceMetadata",
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "metadata": {
            "name": ref(0).name,
            "namespace": "default",
            "uid": UIDS[0],
            "generation": 1,
        },
        "requests": [
            {
                "name": "gpu/big",
                "devices": [
                    {
                        "driver": DRIVER,
                        "pool": NODE,
                        "name": "gpu-1",
                        "attributes": {
                            "type": {"string": "gpu"},
                            "uuid": {"string": card.uuid},
                            "productName": {"string": card.product_name},
                            "resource.kubernetes.io/pciBusID": {"string": card.pci_bus_id},
                            "index": {"int": 1},
                        },
                    }
                ],
            }
        ],
    }
    assert older == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}


def test_one_file_for_each_request() -> None:
    """With all devices of the request, parts as well."""
    part = structs.replace(
        held("gpu-1", "b"),
        device="gpu-1-mig-1g.5gb-0",
        uuid="MIG-1",
        partition=Partition(parent="GPU-1", profile="1g.5gb", start=0, size=1),
    )
    found = prepared(0, [held("gpu-0", "a"), held("gpu-2", "b"), part])
    files = {name: objects(data)[0] for name, data in documents(DRIVER, found).items()}
    devices = {
        name: [device["name"] for device in item["requests"][0]["devices"]]
        for name, item in files.items()
    }
    assert devices == {"a": ["gpu-0"], "b": ["gpu-2", part.device]}
    attributes = files["b"]["requests"][0]["devices"][1]["attributes"]
    assert attributes["type"] == {"string": "mig"}
    assert attributes["uuid"] == {"string": "MIG-1"}
    assert attributes["parentUUID"] == {"string": "GPU-1"}
    assert attributes["profile"] == {"string": "1g.5gb"}


def test_where_a_container_finds_it() -> None:
    """By the name that the author of the pod knows."""
    direct = structs.replace(prepared(0, [held("gpu-0", "gpu")]), metadata=Metadata(folder="/m/u"))
    made = structs.replace(direct, metadata=Metadata(folder="/m/u", pod_claim="mine"))
    for found, place in ((direct, "resourceclaims/claim-0"), (made, "resourceclaimtemplates/mine")):
        assert mounts(DRIVER, found, "gpu") == [
            {
                "hostPath": "/m/u/gpu.json",
                "containerPath": f"{INSIDE}/{place}/gpu/{DRIVER}-metadata.json",
                "options": ["ro", "bind"],
            }
        ]
    assert objects(documents(DRIVER, made)["gpu"])[0]["podClaimName"] == "mine"


def test_a_container_gets_the_files_of_its_requests() -> None:
    """One that names a request sees that one only."""
    found = claims.entry(ref(0), claim(0, result("gpu-0", "a"), result("gpu-0", "b")), NODE_FACTS)
    spec = json.loads(cdi.document(DRIVER, found))
    mounted = {
        device["name"]: [mount["hostPath"] for mount in device["containerEdits"].get("mounts", ())]
        for device in spec["devices"]
    }
    uid = UIDS[0]
    assert {name: paths for name, paths in mounted.items() if paths} == {
        f"{uid}.request.a": [f"/m/{uid}/a.json"],
        f"{uid}.request.b": [f"/m/{uid}/b.json"],
    }


def test_claims_that_an_older_version_prepared_have_none() -> None:
    """A container that is started again must not be given a file that nobody has written."""
    assert "mounts" not in cdi.document(DRIVER, prepared(0)).decode()


async def test_files_come_and_go_with_the_claim(server: ApiServer, settings: NodeSettings) -> None:
    """Readable for whoever the container runs as."""
    put(server, claim(0, result("gpu-0")))
    base = Path(settings.metadata_dir())
    before = os.umask(0o077)
    try:
        async with serving(server, settings), register(Path(settings.registry_dir)) as kubelet:
            await kubelet.prepare(ref(0))
            [file] = list((base / UIDS[0]).iterdir())
            assert stat.S_IMODE(file.stat().st_mode) == 0o644
            assert objects(file.read_bytes())[0]["metadata"]["uid"] == UIDS[0]
            await kubelet.unprepare(ref(0))
            assert names_in(base) == []
    finally:
        os.umask(before)


async def test_what_is_missing_or_left_over_is_put_right(tmp_path: Path) -> None:
    """By the next prepare, and at the next start."""
    machine = Machine(tmp_path, CLAIMS)
    machine.has_metadata = True
    machine.start()
    await machine.prepare(ref(0))
    [file] = list((machine.metadata / UIDS[0]).iterdir())
    content = file.read_bytes()
    file.unlink()
    await machine.prepare(ref(0))
    assert file.read_bytes() == content
    stray = machine.metadata / UIDS[7]
    stray.mkdir()
    (stray / "gpu.json").write_text("{}")
    machine.stop()
    machine.start()
    assert [path.name for path in machine.metadata.iterdir()] == [UIDS[0]]
    machine.stop()


@pytest.mark.parametrize("name", ["../../../../etc", "a/b", "a\nb", "A", "-a", "a" * 64])
def test_an_annotation_that_no_pod_can_have_is_none(name: str) -> None:
    """It would become part of a path; anybody who makes claims may write it."""
    made = claim(0, result("gpu-1"))
    annotated = structs.replace(
        made, metadata=structs.replace(made.metadata, annotations={POD_CLAIM_NAME: name})
    )
    found = claims.entry(ref(0), annotated, NODE_FACTS)
    assert found.metadata is not None
    assert found.metadata.pod_claim == ""
    [mount] = mounts(DRIVER, found, "gpu")
    assert mount["containerPath"].startswith(f"{INSIDE}/resourceclaims/claim-0/gpu/")
