"""Small random worlds for property tests: devices, their use, and claims on them."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from driver.allocator.device import PooledDevice
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.names import DRIVER, MEMORY
from driver.model.quantity import whole
from driver.model.resourceclaim import DeviceRequest
from tests.allocator.build import (
    AClaim,
    ADevice,
    ARequest,
    ASlice,
    claim,
    device,
    first_available,
    problem,
    request,
    slice_of,
)

# How much of the counter there is that some devices draw from.
COUNTER = 2
GROUP = f"{DRIVER}/nvlinkGroup"
BIG = f'device.attributes["{DRIVER}"].productName == "big"'


@st.composite
def _devices(draw: DrawFn) -> list[ADevice]:
    made = []
    for index in range(draw(st.integers(3, 6))):
        one = device(f"gpu-{index}").with_links(
            group=draw(st.sampled_from([None, "a", "b"])),
            switch=draw(st.sampled_from(["", "", "s", "t"])),
            numa=draw(st.integers(0, 1)),
        )
        one = one.with_attribute("productName", draw(st.sampled_from(["big", "small"])))
        one = one.with_capacity(MEMORY, str(draw(st.integers(1, 4))))
        if draw(st.booleans()):
            one = one.shareable()
        if draw(st.integers(0, 3)) == 0:
            one = one.with_counters("set", c=draw(st.integers(1, 2)))
        made.append(one)
    return made


@st.composite
def _request(draw: DrawFn, name: str) -> ARequest:
    made = request(name, count=draw(st.sampled_from([1, 1, 2])))
    if draw(st.integers(0, 3)) == 0:
        made = made.with_selector(BIG)
    if draw(st.booleans()):
        made = made.with_capacity(memory=str(draw(st.integers(1, 2))))
    return made


@st.composite
def _claim(draw: DrawFn, name: str) -> AClaim:
    requests = [draw(_request(f"r{index}")) for index in range(draw(st.integers(1, 2)))]
    if len(requests) > 1 and draw(st.booleans()):
        requests[1] = requests[0].named("r1")
    if draw(st.integers(0, 3)) == 0:
        requests[0] = first_available("r0", draw(_request("one")), draw(_request("two")))
    made = claim(*requests, name=name)
    match draw(st.integers(0, 4)):
        case 0:
            return made.matching(GROUP)
        case 1:
            return made.distinct_in(GROUP)
        case 2:
            return made.matching(GROUP, "r0")
    return made


def options(request: DeviceRequest) -> list[tuple[str, Any]]:
    """The request itself, or its alternatives, by the names that they have in results."""
    alternatives = [(f"{request.name}/{one.name}", one) for one in request.first_available]
    return alternatives or [(request.name, request.exactly)]


def amounts(asked: Any, device: PooledDevice) -> dict[str, int]:
    """What a request takes of each capacity of a device, in nano units."""
    wanted = asked.capacity.requests if asked.capacity else {}
    return device.capacity | {name: amount.nano for name, amount in wanted.items()}


def in_use(problem: Problem, device: PooledDevice) -> list[dict[str, int]]:
    """What others have of the device; empty where it is free."""
    uses = [problem.usage[device.id]] if device.id in problem.usage else []
    return [{name: amount.nano for name, amount in one.consumed.items()} for one in uses]


class World(msgspec.Struct, frozen=True):
    """A node's devices, what is in use of them, and claims."""

    devices: list[ADevice]
    use: dict[DeviceId, DeviceUse]
    claims: list[AClaim]

    def slices(self) -> list[ASlice]:
        """The devices in two slices of one pool, with the counters in a third."""
        half = (len(self.devices) + 1) // 2
        return [
            slice_of(*self.devices[:half], name="a", slices=3),
            slice_of(*self.devices[half:], name="b", slices=3),
            slice_of(name="c", slices=3).with_counter_set("set", c=COUNTER),
        ]

    def problem(self, slices: list[ASlice] | None = None) -> Problem:
        """The claims on these devices."""
        return problem(slices or self.slices(), *self.claims, use=self.use)


@st.composite
def worlds(draw: DrawFn) -> World:
    """Up to six devices, a quarter of them in use (as far as counters last), one or two claims."""
    devices = draw(_devices())
    use: dict[DeviceId, DeviceUse] = {}
    left = COUNTER * 10**9
    for one in devices:
        draws = sum(c.counters["c"].value.nano for c in one.made.consumes_counters)
        if draw(st.integers(0, 3)) or draws > left:
            continue
        left -= draws
        name = DeviceId(DRIVER, "node-1", one.made.name)
        use[name] = DeviceUse(exclusive=True)
        # Shares may be left on a card from the time when it was shareable.
        if one.made.allow_multiple_allocations or draw(st.booleans()):
            use[name] = DeviceUse(shares=frozenset("s"), consumed={MEMORY: whole(1)})
    claims = [draw(_claim(f"claim-{index}")) for index in range(draw(st.integers(1, 2)))]
    return World(devices, use, claims)
