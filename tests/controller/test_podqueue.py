"""The order in which pods are decided, and that those who left take up no room."""

import random
import tracemalloc

from driver.controller.podqueue import PodQueue, turn
from driver.model.api import ObjectMeta
from driver.model.core import Pod, PodSpec


def pod(number: int, priority: int = 0) -> Pod:
    """A pod by its number, which is its age as well."""
    metadata = ObjectMeta(uid=f"uid-{number}", creation_timestamp=f"2026-01-01T{number:08}Z")
    return Pod(metadata=metadata, spec=PodSpec(priority=priority))


def test_who_stays_is_taken_in_turn_however_many_others_left() -> None:
    """Clearing up loses nobody and brings nobody back."""
    queue, chance = PodQueue(), random.Random(7)  # noqa: S311 # repeatable
    staying = [pod(number, chance.randrange(3)) for number in range(50)]
    for number, one in enumerate(staying):
        for other in range(20):
            passing = pod(1000 + 20 * number + other, chance.randrange(3))
            queue.put(passing)
            queue.drop(passing.metadata.uid)
        queue.put(one)
    assert len(queue) == len(staying)
    expected = [one.metadata.uid for one in sorted(staying, key=turn)]
    assert [queue.next() for _ in staying] == expected
    assert queue.next() is None


def test_a_replica_that_takes_nobody_out_does_not_grow() -> None:
    """It is told of every pod that comes and goes, for as long as another one leads."""
    queue = PodQueue()

    def pass_by(first: int) -> None:
        for number in range(first, first + 2000):
            one = pod(number)
            queue.put(one)
            queue.drop(one.metadata.uid)

    pass_by(0)
    tracemalloc.start()
    try:
        pass_by(10_000)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
