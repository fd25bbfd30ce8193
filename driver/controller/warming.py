"""What the first decision about a node would have to work out, worked out before anybody waits.

The pools of a node, how their devices are connected and what the classes' selectors say of them
change only with slices and classes. Doing it early changes no answer.
"""

import asyncio
import gc
from contextlib import suppress
from typing import Never

from driver.controller.cluster import Cluster
from driver.model.deviceclass import DeviceClass
from driver.model.errors import TooDearError

# A step of so many nodes takes some milliseconds; commits are answered between two steps.
_NODES_A_STEP = 4
_LOOK_EVERY_S = 0.2
# New objects between two looks of the garbage collector. A decision leaves no garbage for it, and
# each look took up to 8 ms of some decision.
_OBJECTS_A_COLLECTION = 50_000


def collect_seldom() -> None:
    """Have the garbage collector look less often, from the start: lists are read in half the time.

    It still runs, so that what leaves garbage after all cannot fill the memory.
    """
    _, *later = gc.get_threshold()
    gc.set_threshold(_OBJECTS_A_COLLECTION, *later)


def warm(cluster: Cluster, at_most: int) -> bool:
    """Work on so many of the nodes that have changed; whether all is done."""
    selectors = {_expressions(device_class) for device_class in cluster.classes.values()}
    for _ in range(min(at_most, len(cluster.cold))):
        for pool in cluster.inventory.pools(cluster.node(cluster.cold.pop())):
            pool.scored()
            for expressions in selectors:
                with suppress(TooDearError):
                    pool.selected(expressions)
    return not cluster.cold


async def warm_up(cluster: Cluster) -> None:
    """Work on all nodes, and keep the garbage collector away from what is there now.

    Nearly all of it lives as long as the process. A full collection would look at every object of
    it in the middle of some decision, which takes a tenth of a second in a cluster of 500 nodes.
    """
    while not warm(cluster, _NODES_A_STEP):  # noqa: ASYNC110 # work, with room for others
        await asyncio.sleep(0)
    gc.collect()
    gc.freeze()


async def keep_warm(cluster: Cluster) -> Never:
    """Follow the changes for ever."""
    while True:  # noqa: ASYNC110 # a look at an empty set costs nothing, nobody waits for it
        await asyncio.sleep(_LOOK_EVERY_S if warm(cluster, _NODES_A_STEP) else 0)


def _expressions(device_class: DeviceClass) -> tuple[str, ...]:
    selectors = device_class.spec.selectors
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)
