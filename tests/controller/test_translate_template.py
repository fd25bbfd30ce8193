"""From what containers ask for to requests of one claim, and to a template named by its content."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from driver.controller import translate_template
from driver.controller.cards import Card, cards
from driver.controller.translate import Ask, ImpossibleRequestError
from driver.controller.translate_selectors import Wanted
from driver.controller.translate_template import Asked, Requests
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod, PodResourceClaim, PodSpec
from driver.model.quantity import Quantity, parse
from driver.model.resourceclaim import ExactDeviceRequest, ResourceClaimTemplate
from driver.model.resourceslice import ResourceSlice
from driver.wire import decode
from tests.controller.podsamples import A10G, MIB, T4

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def requests(
    *asked: Asked, wanted: Wanted | None = None, known: set[Card] | None = None
) -> Requests:
    """The requests in a cluster of T4 and A10G."""
    return translate_template.requests(
        asked,
        wanted or Wanted(),
        {T4, A10G} if known is None else known,
        device_class="class",
        driver="gpu.example.com",
    )


def exactly(found: Requests, index: int = 0) -> ExactDeviceRequest:
    """A request that is no list of alternatives."""
    request = found.requests[index].exactly
    assert request is not None
    return request


def amounts(request: ExactDeviceRequest) -> dict[str, Quantity]:
    """What a request asks for of each capacity."""
    return request.capacity.requests if request.capacity else {}


def test_whole_cards_name_no_capacity() -> None:
    """What is not named is taken whole, also where capacities cannot be asked for."""
    found = requests(Asked("main", Ask(count=2)))
    request = exactly(found)
    assert (request.device_class_name, request.count, request.capacity) == ("class", 2, None)
    assert found.of_container == {"main": "gpu-0"}


def test_share_names_memory_and_cores() -> None:
    """MiB become a quantity; cores that are not limited are asked for as none."""
    found = requests(Asked("main", Ask(memory_mib=7500, cores=0)))
    assert amounts(exactly(found)) == {"memory": parse("7500Mi"), "cores": parse("0")}
    assert str(amounts(exactly(found))["memory"]) == "7500Mi"


def test_cores_alone_take_all_memory() -> None:
    """Memory that is not asked for is the whole."""
    assert amounts(exactly(requests(Asked("main", Ask(cores=30))))) == {"cores": parse("30")}


def test_percentage_has_one_alternative_a_size() -> None:
    """Each size of card has its amount, in MiB rounded down, the smallest card first."""
    found = requests(Asked("main", Ask(count=2, memory_percentage=45, cores=0)))
    first, second = found.requests[0].first_available
    assert found.requests[0].exactly is None
    assert first.capacity is not None and second.capacity is not None  # noqa: PT018
    assert first.capacity.requests["memory"] == parse("6912Mi")
    assert second.capacity.requests["memory"] == parse("10362Mi")
    assert (first.count, second.count) == (2, 2)
    assert first.selectors[-1].cel is not None
    assert first.selectors[-1].cel.expression == (
        'has(device.capacity["gpu.example.com"].memory) && '
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("16106127360")) == 0'
    )


def test_percentage_of_one_size_is_exact() -> None:
    """Where the pod's types leave one size, there is nothing to choose."""
    found = requests(
        Asked("main", Ask(memory_percentage=50, cores=0)), wanted=Wanted(types=("a10g",))
    )
    assert amounts(exactly(found))["memory"] == parse("11514Mi")
    assert len(exactly(found).selectors) == 2


def test_smallest_part_of_a_card() -> None:
    """Something is asked for even where a percentage rounds down to nothing."""
    found = requests(
        Asked("main", Ask(memory_percentage=1, cores=0)), known={Card(50 * MIB, "tiny")}
    )
    assert amounts(exactly(found))["memory"] == parse("1Mi")


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (set(), "not known"),
        ({Card(size * MIB, "x") for size in range(1, 10)}, "more than 8 sizes"),
    ],
)
def test_percentage_that_cannot_be_told(known: set[Card], says: str) -> None:
    """No card, or more sizes than a request has room for: the pod is refused."""
    with pytest.raises(ImpossibleRequestError, match=says):
        requests(Asked("main", Ask(memory_percentage=45, cores=0)), known=known)


def test_too_many_cards_for_a_claim() -> None:
    """A claim has room for 32 results, over all containers."""
    with pytest.raises(ImpossibleRequestError, match="40 cards together"):
        requests(Asked("a", Ask(count=20)), Asked("b", Ask(count=20)))


SMALL, LARGE = Ask(memory_mib=100, cores=0), Ask(memory_mib=200, cores=0)


@pytest.mark.parametrize(
    ("asked", "uses"),
    [
        pytest.param(
            [Asked("a", SMALL), Asked("b", SMALL)],
            {"a": 0, "b": 1},
            id="side by side: never shared",
        ),
        pytest.param(
            [Asked("i", SMALL, "init"), Asked("a", LARGE)],
            {"a": 0, "i": 0},
            id="first needs less",
        ),
        pytest.param(
            [Asked("i", LARGE, "init"), Asked("a", SMALL)],
            {"i": 0, "a": 1},
            id="first needs more",
        ),
        pytest.param(
            [
                Asked("i", SMALL, "init"),
                Asked("j", LARGE, "init"),
                Asked("k", LARGE, "init"),
            ],
            {"i": 0, "j": 0, "k": 0},
            id="one after the other: the largest serves all",
        ),
        pytest.param(
            [Asked("i", Ask(count=1), "init"), Asked("a", Ask(count=4))],
            {"i": 0, "a": 1},
            id="another number of cards",
        ),
        pytest.param(
            [Asked("side", LARGE, "sidecar"), Asked("i", SMALL, "init"), Asked("a", SMALL)],
            {"side": 0, "a": 1, "i": 1},
            id="a sidecar already runs beside it",
        ),
    ],
)
def test_init_containers_share(asked: list[Asked], uses: dict[str, int]) -> None:
    """An init container uses a request that covers its own, of a container that runs later."""
    found = requests(*asked)
    assert found.of_container == {name: f"gpu-{index}" for name, index in uses.items()}
    assert [request.name for request in found.requests] == [
        f"gpu-{index}" for index in range(len(set(uses.values())))
    ]


def test_one_numa_node() -> None:
    """`numa-bind` is a constraint on each request of several cards."""
    found = requests(
        Asked("a", Ask(count=1)), Asked("b", Ask(count=2)), wanted=Wanted(one_numa_node=True)
    )
    (constraint,) = found.constraints
    assert constraint.requests == ("gpu-1",)
    assert constraint.match_attribute == names.NUMA_NODE


def template(
    *asked: Asked, namespace: str = "team", policies: dict[str, str] | None = None
) -> ResourceClaimTemplate:
    """The template for some containers."""
    return translate_template.template(requests(*asked), namespace, policies or {})


def test_name_is_the_content() -> None:
    """Equal content, equal name, wherever and in whatever order; other content, another name."""
    one = template(Asked("a", SMALL), policies={"x": "1", "y": "2"})
    same = template(Asked("b", SMALL), namespace="other", policies={"y": "2", "x": "1"})
    assert one.metadata.name == same.metadata.name
    others = {
        template(Asked("a", LARGE), policies={"x": "1", "y": "2"}).metadata.name,
        template(Asked("a", SMALL)).metadata.name,
        template(Asked("a", SMALL), Asked("b", SMALL)).metadata.name,
    }
    assert len(others | {one.metadata.name}) == 4
    assert one.metadata.name.startswith("quadrant-")
    assert len(one.metadata.name) == len("quadrant-") + 16


def test_name_stays() -> None:
    """The name is part of what is stored: another way of hashing would double every template."""
    assert template(Asked("a", SMALL)).metadata.name == "quadrant-e5d7d2d40cb89653"


def test_claims_carry_the_policies() -> None:
    """The hook that sees only the claim knows what the pod asked for."""
    found = template(Asked("a", SMALL), policies={names.GPU_POLICY: "spread"})
    assert found.spec.metadata.annotations == {names.GPU_POLICY: "spread"}
    assert found.metadata.labels == {names.TEMPLATE_LABEL: "true"}


def test_body_reads_back() -> None:
    """What is sent is the template, with the time of its use."""
    found = template(Asked("a", SMALL))
    back = decode.decode(ResourceClaimTemplate, translate_template.body(found, NOW))
    assert back.spec == found.spec
    assert back.metadata.annotations == {names.LAST_USED: "2026-11-30T12:00:00Z"}


def stored(
    name: str, minutes: float, *, label: bool = True, used: bool = True
) -> ResourceClaimTemplate:
    """A template that was used, or at least created, so many minutes ago."""
    at = translate_template.stamp(NOW - timedelta(minutes=minutes))
    return ResourceClaimTemplate(
        metadata=ObjectMeta(
            name=name,
            namespace="team",
            creation_timestamp=at if not used else None,
            annotations={names.LAST_USED: at} if used else {},
            labels={names.TEMPLATE_LABEL: "true"} if label else {},
        )
    )


@pytest.mark.parametrize(
    ("text", "old"),
    [("2026-11-30", True), ("2026-11-30T11:30:00", False), ("yesterday", True), ("", True)],
)
def test_a_time_that_somebody_wrote_is_no_fault(text: str, *, old: bool) -> None:
    """Whoever may create a template can write any; a leader that fell over one would not lead."""
    made = stored("t", 0)
    written = {names.LAST_USED: text}
    item = replace(made, metadata=replace(made.metadata, annotations=written))
    assert bool(translate_template.unused([item], [], NOW)) == old
    assert translate_template.touch_due(item, NOW)


def user(name: str, namespace: str = "team") -> Pod:
    """A pod whose claims come from a template."""
    claim = PodResourceClaim(name="gpu", resource_claim_template_name=name)
    return Pod(
        metadata=ObjectMeta(name="p", namespace=namespace), spec=PodSpec(resource_claims=(claim,))
    )


def test_unused() -> None:
    """Ours, named by no pod of the namespace, and not used for an hour."""
    found = translate_template.unused(
        [
            stored("old", 61),
            stored("old-created", 61, used=False),
            stored("recent", 59),
            stored("in-use", 61),
            stored("in-use-elsewhere", 61),
            stored("somebodys", 61, label=False),
        ],
        [user("in-use"), user("in-use-elsewhere", "other")],
        NOW,
    )
    assert [item.metadata.name for item in found] == ["old", "old-created", "in-use-elsewhere"]


def test_touch() -> None:
    """The time of use is written anew before a template could count as unused."""
    assert not translate_template.touch_due(stored("x", 14), NOW)
    assert translate_template.touch_due(stored("x", 16), NOW)
    assert translate_template.TOUCH_AFTER < translate_template.UNUSED_AFTER


def test_cards() -> None:
    """Kinds of cards are what our slices publish with a memory."""
    devices = [
        {
            "name": "gpu-0",
            "attributes": {"productName": {"string": "Tesla T4"}},
            "capacity": {"memory": {"value": "15360Mi"}},
        },
        {"name": "gpu-1", "capacity": {"memory": {"value": "1Gi"}}},
        {
            "name": "mig-0",
            "attributes": {"type": {"string": "mig"}},
            "capacity": {"memory": {"value": "5Gi"}},
        },
        {"name": "nic-0"},
    ]
    slices = [
        decode.convert(
            ResourceSlice,
            {"metadata": {}, "spec": {"driver": driver, "pool": {"name": "n"}, "devices": devices}},
        )
        for driver in ("gpu.example.com", "gpu.example.com", "other.example.com")
    ]
    assert cards(slices[:2], "gpu.example.com") == {T4, Card(1024 * MIB, "")}
    assert cards(slices[2:], "gpu.example.com") == frozenset()
