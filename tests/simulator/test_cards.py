"""How much of each card is in use."""

from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.quantity import parse
from driver.model.resourceslice import Device, DeviceAttribute, DeviceCapacity
from driver.simulator.cards import card, cards

GIB = 1024**3


def _device(index: int) -> Device:
    return Device(
        name=f"gpu-{index}",
        attributes={
            "index": DeviceAttribute(int_=index),
            "uuid": DeviceAttribute(string=f"GPU-{index}"),
            "productName": DeviceAttribute(string="T4"),
        },
        capacity={
            "memory": DeviceCapacity(value=parse("15Gi")),
            "cores": DeviceCapacity(value=parse("100")),
        },
    )


def _id(index: int) -> DeviceId:
    return DeviceId("d", "n", f"gpu-{index}")


def test_a_free_card() -> None:
    """Nothing is in use; the attributes are told."""
    found = card("n", _id(0), _device(0), None)
    assert (found.uuid, found.product, found.memory) == ("GPU-0", "T4", 15 * GIB)
    assert (found.memory_used, found.cores_used, found.shares, found.exclusive) == (0, 0, 0, False)


def test_a_shared_card() -> None:
    """What is in use is the sum over its shares."""
    use = DeviceUse(
        shares=frozenset({"a", "b"}), consumed={"memory": parse("14Gi"), "cores": parse("60")}
    )
    found = card("n", _id(0), _device(0), use)
    assert (found.memory_used, found.cores_used, found.shares) == (14 * GIB, 60, 2)


def test_an_exclusive_card() -> None:
    """All of it is in use, by nobody's share."""
    found = card("n", _id(0), _device(0), DeviceUse(exclusive=True))
    assert (found.memory_used, found.cores_used, found.shares) == (15 * GIB, 100, 0)


def test_a_card_without_attributes() -> None:
    """What a driver does not publish is empty, and the index -1."""
    found = card("n", _id(0), Device(name="x"), None)
    assert (found.index, found.uuid, found.memory) == (-1, "", 0)


def test_order_is_that_of_the_index() -> None:
    """Number 10 comes after number 9, whatever the names say."""
    devices = [(_id(index), _device(index)) for index in (10, 9, 1)]
    assert [one.index for one in cards([("n", devices)], {})] == [1, 9, 10]


def test_parts_are_counted_with_their_card() -> None:
    """One card, with what is in use of its parts; a part without its card stands for itself."""

    def part(index: int, parent: str) -> tuple[DeviceId, Device]:
        name = f"gpu-{index}-mig-1g5gb-0"
        attributes = {
            "index": DeviceAttribute(int_=index),
            "parentUUID": DeviceAttribute(string=parent),
        }
        memory = {"memory": DeviceCapacity(value=parse("5Gi"))}
        return DeviceId("d", "n", name), Device(name=name, attributes=attributes, capacity=memory)

    mine, others = part(0, "GPU-0"), part(1, "GPU-gone")
    use = {name: DeviceUse(exclusive=True) for name, _ in (mine, others)}
    found = cards([("n", [mine, (_id(0), _device(0)), others])], use)
    assert [(one.device.device, one.memory_used // GIB, one.shares) for one in found] == [
        ("gpu-0", 5, 1),
        ("gpu-1-mig-1g5gb-0", 5, 0),
    ]
