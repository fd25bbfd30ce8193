"""docs/reference/resources.md: resource names in pods that lead to devices of ours."""

from collections.abc import Iterator

import msgspec

from driver.controller.extended import IMPLICIT_PREFIX
from driver.controller.translate import MAX_DEVICES, WHOLE, ResourceNames
from hack.reference.markdown import code, page, prose, table

# What each of them stands for: its values, and what a container gets.
MEANINGS = {
    "count": (
        f"1 to {MAX_DEVICES}; 0: none",
        "Number of cards. Alone it means whole cards, else that many shares.",
    ),
    "memory": ("MiB of each card", "Memory of the share; 0 or absent: all of it."),
    "memory_percentage": (
        f"0 to {WHOLE}",
        "The same in percent of the card that is found. `gpumem` goes first where both are there.",
    ),
    "cores": (
        f"0 to {WHOLE}, percent of each card",
        (
            f"Compute of the share; absent or 0: no part is promised. With all the memory, 0 and "
            f"{WHOLE} are the whole card."
        ),
    ),
    "priority": (
        "a whole number",
        "Not a device: told to HAMi's library in the container as `CUDA_TASK_PRIORITY`.",
    ),
}


def text() -> str:
    """The page."""
    return page("Resources in pods", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        Names in `resources.limits` (or `requests`, which must be equal) of containers and init
        containers that lead to devices. The webhook for pods turns them into a claim; the
        formulas and the differences to HAMi are in [hami.md](../hami.md).
        """
    )
    yield from table(
        ("resource", "values", "meaning"),
        ((code(field.default), *MEANINGS[field.name])
         for field in msgspec.structs.fields(ResourceNames)),
    )  # fmt: skip
    yield from prose(
        """
        Two more are answered by Kubernetes itself from 1.36 on (KEP-5004); the pod keeps them,
        and the commit hook scores what the scheduler picks:
        """
    )
    yield from table(
        ("resource", "meaning"),
        (
            ("`spec.extendedResourceName` of a DeviceClass",
             ("That many devices of the class. The chart sets it by "
             "`deviceClass.extendedResourceName`.")),
            (code(f"{IMPLICIT_PREFIX}CLASS"), "The same, for every class by its own name."),
        ),
    )  # fmt: skip
    yield from prose(
        """
        Which of the two serves a plain `nvidia.com/gpu`, and what happens beside a device
        plugin, is in [install](../install.md#chart).
        """
    )
