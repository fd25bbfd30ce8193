"""How much a search does, and that it stops: steps are devices that were tried."""

import pytest
from msgspec.structs import replace

from driver.allocator.allocate import InvalidPoolsError, allocate
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.model.allocation import RejectionKind
from driver.model.errors import AllocationError
from driver.model.names import DRIVER, MEMORY
from driver.model.resourceslice import DeviceAttribute
from driver.policy.registry import objective
from tests.allocator.build import (
    ADevice,
    card,
    chosen,
    claim,
    device,
    device_class,
    first_available,
    gpus,
    in_use,
    problem,
    request,
    shared,
    slice_of,
)

GROUP = f"{DRIVER}/nvlinkGroup"
COMPACT = objective("compact")


def test_first_fit_tries_one_device_after_the_other() -> None:
    """The first free device is taken, and nothing beyond it is looked at."""
    outcome = allocate(problem([slice_of(*gpus(8))], claim(), use=in_use("gpu-0", "gpu-1")))
    assert chosen(outcome) == ["gpu-2"]
    assert outcome.steps == 3


def test_equal_devices_are_tried_once() -> None:
    """Sixteen like cards are one choice, beside first fit's own step."""
    like = [device(f"gpu-{index}") for index in range(16)]
    outcome = allocate(problem([slice_of(*like)], claim()), objective=COMPACT)
    assert chosen(outcome) == ["gpu-0"]
    assert outcome.steps == 2


def test_equal_requests_are_not_exchanged() -> None:
    """Four requests for one of eight like cards each have one answer, not 8 x 7 x 6 x 5."""
    like = [device(f"gpu-{index}") for index in range(8)]
    asked = claim(*(request(f"r{index}") for index in range(4)))
    outcome = allocate(problem([slice_of(*like)], asked), objective=COMPACT)
    assert chosen(outcome) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert outcome.steps <= 20


def test_too_many_equal_requests_are_found_out_soon() -> None:
    """Nine requests for eight cards do not fit; there are 8! ways to try them all."""
    asked = claim(*(request(f"r{index}") for index in range(9)))
    outcome = allocate(problem([slice_of(*gpus(8))], asked))
    assert isinstance(outcome, Unsatisfiable)
    assert not outcome.truncated
    assert outcome.steps < 2000


def test_four_of_eight_with_a_constraint_takes_few_steps() -> None:
    """The case that the commit hook must answer within a millisecond."""
    asked = claim(request(count=4)).matching(GROUP)
    outcome = allocate(problem([slice_of(*gpus(8))], asked, use=in_use("gpu-1")), objective=COMPACT)
    assert chosen(outcome) == ["gpu-4", "gpu-5", "gpu-6", "gpu-7"]
    assert outcome.steps <= 60


def test_a_search_stops_at_its_bound_and_says_so() -> None:
    """The best so far is kept; first fit's own set is the least that comes out."""
    unlike = [
        device(f"gpu-{index}").with_links(group=f"g{index}", root=f"p{index}", numa=index)
        for index in range(12)
    ]
    asked = claim(request(count=6))
    outcome = allocate(problem([slice_of(*unlike)], asked), objective=COMPACT, max_steps=50)
    assert isinstance(outcome, Allocated)
    assert outcome.truncated
    assert outcome.explanation.stopped_after == 50
    assert outcome.steps <= 100
    assert len(chosen(outcome)) == 6


def test_first_fit_that_finds_nothing_within_the_bound_says_so() -> None:
    """Not fitting and not knowing are different answers."""
    outcome = allocate(problem([slice_of(*gpus(8))], claim(request(count=8))), max_steps=3)
    assert isinstance(outcome, Unsatisfiable)
    assert outcome.truncated
    assert "3 steps" in outcome.reason()
    assert outcome.kinds() == (RejectionKind.SEARCH_BOUND,)


def test_order_is_by_place_in_the_slice_not_by_name() -> None:
    """gpu-10 comes after gpu-9 when the slice lists it so."""
    like = [device(f"gpu-{index}") for index in range(12)]
    outcome = allocate(
        problem([slice_of(*like)], claim(request(count=3)), use=in_use("gpu-0", "gpu-1")),
        objective=COMPACT,
    )
    assert chosen(outcome) == ["gpu-2", "gpu-3", "gpu-4"]
    ten = allocate(
        problem([slice_of(*like)], claim(), use=in_use(*(f"gpu-{n}" for n in range(9)))),
        objective=COMPACT,
    )
    assert chosen(ten) == ["gpu-9"]


def test_the_better_score_does_not_override_the_order_of_alternatives() -> None:
    """The user prefers two small cards; a single big one would score as well or better."""
    big, small = device("big").with_attribute("productName", "big"), device("small")
    cards: list[ADevice] = [
        big,
        *(small.with_attribute("productName", "small").renamed(f"small-{n}") for n in range(2)),
    ]
    name = f'device.attributes["{DRIVER}"].productName'
    asked = claim(
        first_available(
            "gpu",
            request("two", count=2).with_selector(f'{name} == "small"'),
            request("one").with_selector(f'{name} == "big"'),
        )
    )
    outcome = allocate(problem([slice_of(*cards)], asked), objective=COMPACT)
    assert chosen(outcome) == ["small-0", "small-1"]


def test_a_selector_that_fails_counts_only_where_it_is_met() -> None:
    """First fit stops at the device; one that comes later is never asked."""
    good = device("good").with_attribute("productName", "big")
    bad = device("bad")
    classes = [device_class("gpu", f'device.attributes["{DRIVER}"].productName == "big"')]
    asked = claim()
    outcome = allocate(problem([slice_of(good, bad)], asked, classes=classes))
    assert chosen(outcome) == ["good"]
    scored = allocate(problem([slice_of(good, bad)], asked, classes=classes), objective=COMPACT)
    assert chosen(scored) == ["good"]
    with pytest.raises(
        AllocationError, match=r"class gpu: selector #0 on device .*/bad: CEL runtime error"
    ):
        allocate(problem([slice_of(bad, good)], asked, classes=classes))
    held = problem([slice_of(bad, good)], asked, classes=classes, use=in_use("bad"))
    assert chosen(allocate(held)) == ["good"]


def test_a_broken_pool_matters_only_when_nothing_else_fits() -> None:
    """Then it is an error that names the pool and what is wrong with it."""
    broken = slice_of(device("gpu-0"), device("gpu-0"), pool="a", name="a")
    sound = slice_of(device("gpu-0"), pool="b", name="b")
    assert chosen(allocate(problem([broken, sound], claim()))) == ["gpu-0"]
    with pytest.raises(InvalidPoolsError, match="/a: duplicate device name gpu-0"):
        allocate(problem([broken], claim()))


def test_why_nothing_fits_is_counted_by_reason() -> None:
    """Each reason has a number and an example."""
    cards = [
        device("gpu-0"),
        device("gpu-1"),
        device("gpu-2").with_taint("sick"),
        device("gpu-3").with_attribute("productName", "small"),
    ]
    name = f'device.attributes["{DRIVER}"]'
    asked = claim(request().with_selector(f'!("productName" in {name})'))
    outcome = allocate(problem([slice_of(*cards)], asked, use=in_use("gpu-0", "gpu-1")))
    assert isinstance(outcome, Unsatisfiable)
    assert outcome.reason() == (
        f"2 devices: in use (such as {DRIVER}/node-1/gpu-0); "
        f"1 device: has a taint that is not tolerated (such as {DRIVER}/node-1/gpu-2); "
        f"1 device: not selected by class gpu and request gpu (such as {DRIVER}/node-1/gpu-3)"
    )
    assert outcome.kinds() == (
        RejectionKind.IN_USE,
        RejectionKind.TAINT,
        RejectionKind.NOT_SELECTED,
    )


def test_every_reason_is_of_a_kind() -> None:
    """For whoever counts; the sentences have names in them."""
    small, full = card(0, "4Gi"), card(1, "16Gi")
    asked = claim(request().with_capacity(memory="8Gi"))
    outcome = allocate(problem([slice_of(small, full)], asked, use=shared("gpu-1", "10Gi")))
    assert isinstance(outcome, Unsatisfiable)
    assert [(one.reason, one.kind) for one in outcome.rejections] == [
        ("cannot give that much capacity", RejectionKind.TOO_SMALL),
        ("not enough memory left", RejectionKind.TOO_LITTLE_LEFT),
    ]
    taken = allocate(problem([slice_of(full)], asked, use=shared("gpu-1", "16Gi")))
    assert isinstance(taken, Unsatisfiable)
    assert taken.kinds() == (RejectionKind.IN_USE,)
    few = allocate(problem([slice_of(*gpus(4))], claim(request(count=8))))
    assert isinstance(few, Unsatisfiable)
    assert [(one.count, one.kind) for one in few.rejections] == [(4, RejectionKind.TOO_FEW)]
    apart = claim(request(count=8)).matching(GROUP)
    outcome = allocate(problem([slice_of(*gpus(8))], apart))
    assert isinstance(outcome, Unsatisfiable)
    assert outcome.kinds() == (RejectionKind.CONSTRAINT,)
    outcome = allocate(problem([], claim()))
    assert isinstance(outcome, Unsatisfiable)
    assert outcome.kinds() == (RejectionKind.NOT_SELECTED,)


def test_runners_up_follow_the_best_and_score_no_more() -> None:
    """The explanation names the next choices, best first, each with its score."""
    outcome = allocate(
        problem([slice_of(*gpus(8))], claim(), use=in_use("gpu-0", "gpu-1", "gpu-4")),
        objective=COMPACT,
    )
    assert isinstance(outcome, Allocated)
    explanation = outcome.explanation
    assert explanation.policy == "compact"
    assert chosen(outcome) == ["gpu-2"]
    scores = [explanation.score.total, *(one.score.total for one in explanation.runners_up)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1]
    assert [one.device for one in explanation.runners_up[0].devices] == ["gpu-5"]
    assert [one.reason for one in explanation.rejections] == ["in use"]


def test_a_choice_that_would_be_an_error_is_passed_over() -> None:
    """Mode All of the blue ones stops at a red one beside it; the best score looks on elsewhere."""
    color = f'device.attributes["{DRIVER}"].color'
    cards = [
        device("blue").with_attribute("color", "blue").with_attribute("kind", "any"),
        device("red").with_attribute("color", "red").with_attribute("kind", "any"),
        device("all").with_attribute("color", "blue").with_attribute("kind", "all"),
    ]
    kind = f'device.attributes["{DRIVER}"].kind'
    asked = claim(
        request("one").with_selector(f'{kind} == "any"'),
        request("rest").with_selector(f'{kind} == "all" && {color} == "blue"').for_all(),
    ).matching(f"{DRIVER}/color")
    for policy in ("compact", "spread"):
        outcome = allocate(problem([slice_of(*cards)], asked), objective=objective(policy))
        assert chosen(outcome) == ["blue", "all"]


def test_a_device_that_cannot_be_decided_leaves_no_trace() -> None:
    """Its counters are given back when its attribute turns out to have no value."""
    odd = device("odd").with_counters("set", c=1).with_attribute("color", ("x",))
    broken = replace(odd, made=replace(odd.made, attributes={"color": DeviceAttribute()}))
    good = [
        device(f"good-{n}").with_counters("set", c=1).with_attribute("color", "x") for n in range(2)
    ]
    slices = [
        slice_of(*good, broken, slices=2),
        slice_of(name="counters", slices=2).with_counter_set("set", c=2),
    ]
    asked = claim(request(count=2)).matching(f"{DRIVER}/color")
    outcome = allocate(problem(slices, asked), objective=objective("spread"))
    assert chosen(outcome) == ["good-0", "good-1"]
    assert isinstance(outcome, Allocated)
    assert outcome.explanation.runners_up == ()


def test_cards_that_round_differently_are_not_the_same() -> None:
    """Equal but for their request policies: the one that is filled more is the compact choice."""
    cards = [
        device(f"by-{step}").with_capacity(MEMORY, "16", step=step).shareable()
        for step in ("1", "8")
    ]
    asked = claim(request().with_capacity(memory="3"))
    for policy, name in (("compact", "by-8"), ("spread", "by-1")):
        outcome = allocate(problem([slice_of(*cards)], asked), objective=objective(policy))
        assert chosen(outcome) == [name]
