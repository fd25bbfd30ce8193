"""A cluster behind real HTTP, and the program run against it with a kubeconfig."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from driver.cli.main import app
from driver.model import names
from tests.controller.commits import CLASS, DRIVER, Json
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal

RESOURCE = "/apis/resource.k8s.io/v1"
SLICES, CLAIMS, CLASSES = (
    f"{RESOURCE}/resourceslices",
    f"{RESOURCE}/resourceclaims",
    (f"{RESOURCE}/deviceclasses"),
)
NODES, PODS, EVENTS, SPACES = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/namespaces",
)
CREATED = "2026-01-01T00:00:00Z"


class LiveCluster:
    """The server, what is in it, and the program."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        server.documents["/version"] = {"gitVersion": "v1.37.2"}
        kinds = ("resourceclaims", "resourceslices", "deviceclasses", "devicetaintrules")
        server.documents[RESOURCE] = {"resources": [{"name": name} for name in kinds]}
        expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        server.put(CLASSES, {"metadata": {"name": CLASS}, "spec": {"selectors": [expression]}})
        server.put(SPACES, {"metadata": {"name": "ns"}})

    def node(self, name: str, devices: Iterable[Json], **more: Any) -> None:
        """A node whose plugin publishes these devices in one complete pool."""
        metadata = {"name": name, "labels": more.pop("labels", {})}
        metadata["annotations"] = more.pop("annotations", {})
        self.server.put(NODES, {"metadata": metadata, **more})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": list(devices)}
        self.server.put(SLICES, {"metadata": {"name": f"{name}-slice"}, "spec": spec})

    def claim(
        self, name: str, *results: Json, pod: str = "", annotations: Json | None = None, **more: Any
    ) -> Json:
        """A claim with these devices; without any it waits."""
        metadata: Json = {"name": name, "namespace": "ns", "creationTimestamp": CREATED}
        metadata |= more.pop("metadata", {})
        metadata["annotations"] = annotations or {}
        metadata["labels"] = more.pop("labels", {})
        exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
        exactly |= more.pop("exactly", {})
        item: Json = {
            "metadata": metadata,
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
        if results:
            item["status"] = {"allocation": {"devices": {"results": list(results)}}}
        if results and pod:
            item["status"]["reservedFor"] = [{"resource": "pods", "name": pod, "uid": pod}]
        return self.server.put(CLAIMS, item)

    def pod(self, name: str, *, node: str = "", nominated: str = "", gated: bool = False) -> None:
        """A pod of ours."""
        metadata = {"name": name, "namespace": "ns", "labels": {names.POD_LABEL: "true"}}
        gates = [{"name": names.PLACEMENT_GATE}] if gated else []
        spec = {"nodeName": node, "schedulingGates": gates, "containers": [{"name": "main"}]}
        status = {"nominatedNodeName": nominated}
        self.server.put(PODS, {"metadata": metadata, "spec": spec, "status": status})

    def forbid(self, path: str) -> None:
        """Answer 403 to everything whose path contains this."""
        message = f'User "reader" cannot list resource "{path}"'
        self.server.refuse(Refusal(403, "Forbidden", message), times=10**6, path=path)

    async def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """The program with these arguments; errors become its exit status, as for a user."""
        options = ("--kubeconfig", str(self.kubeconfig()))
        return await asyncio.to_thread(invoke, [*arguments, *options], stdin)

    def kubeconfig(self) -> Path:
        """A file that leads to the server; its namespace is `ns`."""
        path = self.folder / "kubeconfig"
        context = {"cluster": "c", "user": "u", "namespace": "ns"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": self.server.url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "here", "context": context}],
        }
        path.write_text(json.dumps(config), "utf-8")
        return path


def invoke(arguments: list[str], stdin: str | None = None) -> Result:
    """Run the program in this process."""
    return CliRunner().invoke(app, arguments, input=stdin)


@asynccontextmanager
async def live_cluster(folder: Path) -> AsyncIterator[LiveCluster]:
    """A cluster with our class and nothing else."""
    async with ApiServer() as server:
        yield LiveCluster(server, folder)
