"""What it takes to know a cluster, and to keep up with it: from the watches' bytes to the ledger.

A process of its own comes to know all (`known`); the reference is one that reads the same bytes and
forgets them. What one change takes is measured in this process; the reference is the same change in
a cluster of a tenth of the nodes, turn by turn: it must not depend on the size.
"""

import gc
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from driver.controller.warming import warm
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import decode
from hack.benchmarks.decisions import ready
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import FEWEST, Fleet, device_class, node
from hack.benchmarks.known import Report
from hack.benchmarks.stage import Stage
from hack.benchmarks.workloads import Json

_LEVEL = 0.5
_SMALLER = 10


def measure(*, nodes: int, changes: int, seed: int) -> Iterator[Section]:
    """All at once, then so many changes of each kind; half of the cards are in use."""
    yield _built(Fleet(nodes), seed)
    yield _followed(nodes, changes, seed)


def _built(fleet: Fleet, seed: int) -> Section:
    taken = len(fleet.taken(_LEVEL, seed))
    with tempfile.TemporaryDirectory(prefix="qb-") as folder:
        file = Path(folder) / "objects"
        with file.open("wb") as lines:
            for version, (kind, item) in enumerate(_objects(fleet, seed), start=1):
                known = {"uid": f"u{version}", **item["metadata"], "resourceVersion": str(version)}
                lines.write(kind.encode() + b" ")
                lines.write(msgspec.json.encode({**item, "metadata": known}) + b"\n")
        all_of_it, only_read = _report(file), _report(file, "--only-read")
    told = (
        ("read and entered, CPU", "ms", 1000 * all_of_it.read_cpu, 1000 * only_read.read_cpu),
        ("ready to decide, CPU", "ms", 1000 * all_of_it.ready_cpu, 1000 * only_read.ready_cpu),
        ("resident memory", "MiB", all_of_it.resident, only_read.resident),
    )
    figures = tuple(
        Figure(name=name, unit=unit, value=value, reference=reference)
        for name, unit, value, reference in told
    )
    title = f"ledger of {fleet.nodes} slices with 8 cards each, {taken} claims"
    return Section(title, "the same bytes read and forgotten", figures)


def _objects(fleet: Fleet, seed: int) -> Iterator[tuple[str, Json]]:
    yield "DeviceClass", device_class()
    for published in fleet.slices():
        yield "ResourceSlice", published
    for name in fleet.names:
        yield "Node", node(name)
    for number, place in enumerate(fleet.taken(_LEVEL, seed)):
        yield "ResourceClaim", fleet.holder(place, number)


def _report(file: Path, *options: str) -> Report:
    argv = [sys.executable, "-m", "hack.benchmarks.known", str(file), *options]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Report)


class _Changes:
    """A cluster that changes, and how long it took to take note of that; seconds of CPU time."""

    def __init__(self, nodes: int, seed: int) -> None:
        fleet = Fleet(nodes)
        self._stage: Stage = ready(fleet, _LEVEL, seed)
        self._slices = list(fleet.slices())
        self._chance = random.Random(seed)  # noqa: S311 # a seed must give the same run again
        self.times: dict[str, list[float]] = {}

    def make(self) -> None:
        """One change of each kind."""
        stage = self._stage
        document = stage.stored(stage.question().proposed)
        self._time("a claim gets its devices", lambda: stage.show(document))
        self._time("a claim goes", stage.release)
        published = self._published()
        self._time("a slice changes", lambda: self._slice(published))

    def _published(self) -> bytes:
        """Some slice, one of whose cards now says something else."""
        item = self._chance.choice(self._slices)
        card = self._chance.choice(item["spec"]["devices"])
        card["attributes"]["brand"] = {"string": f"B{self._chance.random()}"}
        return msgspec.json.encode(item)

    def _slice(self, document: bytes) -> None:
        """Take note, and make the node ready for its next decision."""
        self._stage.cluster.put_slice(decode(ResourceSlice, document))
        warm(self._stage.cluster, 1)

    def _time(self, name: str, change: Callable[[], object]) -> None:
        begin = time.thread_time()
        change()
        self.times.setdefault(name, []).append(time.thread_time() - begin)


def _followed(nodes: int, changes: int, seed: int) -> Section:
    small = max(FEWEST, nodes // _SMALLER)
    large, little = _Changes(nodes, seed), _Changes(small, seed)
    for _ in range(changes):
        large.make()
        little.make()
    gc.unfreeze()
    figures = tuple(
        Figure(name=name, unit="ms", value=spread(times), reference=spread(little.times[name]))
        for name, times in large.times.items()
    )
    return Section(f"one change at {nodes} nodes, CPU", f"at {small} nodes", figures)
