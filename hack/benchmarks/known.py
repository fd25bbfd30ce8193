"""A process that comes to know a cluster, and tells what that took.

python -m hack.benchmarks.known FILE [--only-read]: each line of FILE is a kind, a blank, and an
object of it as the API server has it. With `--only-read` objects are read and forgotten.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from driver.controller.cluster import Cluster
from driver.controller.policies import Defaults
from driver.controller.warming import warm_up
from driver.kube.store import Store, Upsert
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.names import DRIVER
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.simulator.releases import LATEST, release
from driver.wire.decode import decode
from hack.benchmarks.process import rss

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (DeviceClass, ResourceSlice, Node, ResourceClaim)
}


class Report(msgspec.Struct, frozen=True):
    """CPU seconds until all was read, and until it could decide; MiB that are resident then."""

    read_cpu: float
    ready_cpu: float
    resident: float


def main() -> None:
    """Read, and tell the report on stdout."""
    file, *options = sys.argv[1:]
    cluster = Cluster(
        driver=DRIVER,
        features=release(LATEST).features,
        defaults=Defaults(node="compact", gpu="compact"),
    )
    put: dict[str, Callable[[Any], object]] = {
        "DeviceClass": cluster.put_class,
        "ResourceSlice": cluster.put_slice,
        "Node": cluster.put_node,
        "ResourceClaim": lambda claim: cluster.put_claim(claim, 0.0),
    }
    stores = {kind: Store[Any]() for kind in KINDS}
    cpu = time.process_time()
    with Path(file).open("rb") as lines:
        for line in lines:
            kind, _, document = line.partition(b" ")
            item = decode(KINDS[kind.decode()], document)
            if options:
                continue
            for event in stores[kind.decode()].put(item):
                if isinstance(event, Upsert):
                    put[kind.decode()](event.object)
    read = time.process_time() - cpu
    asyncio.run(warm_up(cluster))
    report = Report(
        read_cpu=read,
        ready_cpu=time.process_time() - cpu,
        resident=rss(Path("/proc/self/status").read_text()),
    )
    sys.stdout.buffer.write(msgspec.json.encode(report))


if __name__ == "__main__":
    main()
