"""What is wrong with a card, and when that is over."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.node.health.card import (
    CardHealth,
    Rules,
    after_reading,
    after_silence,
    after_xid,
)
from driver.node.health.port import Reading
from driver.node.health.verdict import message, status, taint
from driver.node.health.xids import OF_PROGRAMS

RULES = Rules(quiet_s=300)
WELL = CardHealth()


def read(card: CardHealth, at: float, **said: Any) -> CardHealth:
    """One look at the card."""
    return after_reading(card, Reading(index=0, **said), at, RULES)


def xid(card: CardHealth, number: int, at: float) -> CardHealth:
    """An error reported of the card."""
    return after_xid(card, number, at, RULES)


def reasons(card: CardHealth) -> list[str]:
    """What is wrong, worst first."""
    return [problem.reason for problem in card.problems]


def test_a_card_is_unknown_until_it_was_read() -> None:
    """The kubelet is not told what nobody knows; pods are not kept away for it either."""
    assert (status(WELL), status(read(WELL, 0))) == ("Unknown", "Healthy")
    assert taint(WELL, driver="d", effect="NoSchedule") is None


@pytest.mark.parametrize("number", sorted(OF_PROGRAMS))
def test_errors_of_programs_do_not_count(number: int) -> None:
    """A program that reads beyond its memory says nothing about the card."""
    assert xid(WELL, number, 0) == WELL


def test_an_operator_ignores_more() -> None:
    """By number, whatever it is."""
    rules = Rules(ignored_xids=OF_PROGRAMS | {79})
    assert after_xid(WELL, 79, 0, rules) == WELL


@pytest.mark.parametrize(
    ("number", "recovery", "at", "lasts"),
    [
        (63, None, 399, True),
        (63, None, 400, False),
        (79, None, 100_000, True),
        # The card knows better than our list.
        (79, "none", 399, True),
        (79, "none", 400, False),
    ],
)
def test_an_xid_ends_after_a_quiet_time_or_by_a_reset(
    number: int, recovery: str | None, at: float, *, lasts: bool
) -> None:
    """The quiet time counts from the last of several."""
    card = xid(xid(read(WELL, 0, recovery=recovery), number, 50), number, 100)
    card = read(card, 101, recovery=recovery)
    assert reasons(card) == [f"xid-{number}"]
    assert card.problems[0].since == 50
    assert bool(reasons(read(card, at, recovery=recovery))) == lasts


def test_a_card_that_asks_for_a_reset_and_gets_it() -> None:
    """With the reset everything before it is over, at once."""
    card = read(xid(WELL, 79, 0), 1, recovery="gpu-reset", uncorrected=2)
    assert reasons(card) == ["needs-gpu-reset", "xid-79"]
    card = read(card, 1000, recovery="gpu-reset", uncorrected=2)
    assert reasons(card) == ["needs-gpu-reset"], "it is the card that asks; the XID is long past"
    card = xid(card, 74, 1001)
    assert status(read(card, 1002, recovery="none", uncorrected=2)) == "Healthy"


def test_a_lost_card_comes_back() -> None:
    """Only when it has answered for some time: some come and go. Then its XIDs are past too."""
    card = read(xid(read(WELL, 0), 79, 1), 2, lost="GPU is lost")
    assert reasons(card) == ["lost", "xid-79"]
    for at, now in ((100, ["lost", "xid-79"]), (105, ["lost", "xid-79"])):
        card = read(card, at, lost="GPU is lost")
        assert reasons(card) == now
    card = read(card, 110)
    assert reasons(card) == ["lost", "xid-79"], "answers for the first time"
    card = read(card, 112, lost="GPU is lost")
    card = read(card, 117)
    assert reasons(card) == ["lost", "xid-79"], "counts anew"
    assert reasons(read(card, 122)) == []


def test_ecc_errors_last_until_the_counter_falls() -> None:
    """Where the card does not say itself whether it needs a reset."""
    card = read(WELL, 0, uncorrected=2)
    assert reasons(card) == ["ecc"], "also those of before this process"
    card = read(card, 9999, uncorrected=2)
    assert reasons(card) == ["ecc"]
    card = xid(card, 48, 10_000)
    assert reasons(read(card, 10_001, uncorrected=0)) == [], "reset"
    assert reasons(read(card, 10_001, uncorrected=1)) == ["ecc"], "reset, and already one again"


def test_a_counter_that_is_not_told_has_not_fallen() -> None:
    """A call that fails once is no reset."""
    card = xid(read(WELL, 0, uncorrected=2), 79, 1)
    card = read(read(card, 2), 3, uncorrected=2)
    assert reasons(card) == ["ecc", "xid-79"]
    assert reasons(read(card, 4, uncorrected=0)) == []


def test_a_card_that_is_away_while_it_is_reset() -> None:
    """It asks for a reset, is lost for some time, and asks no more."""
    card = read(xid(WELL, 79, 0), 1, recovery="gpu-reset")
    card = read(card, 5, lost="GPU is lost")
    assert reasons(card) == ["lost", "needs-gpu-reset", "xid-79"]
    card = read(card, 10, recovery="none")
    assert reasons(card) == ["lost", "xid-79"]
    assert reasons(read(card, 15, recovery="none")) == []


def test_ecc_errors_of_a_card_that_needs_no_recovery() -> None:
    """It has put other memory in the place of the bad one, and says so."""
    card = read(WELL, 0, uncorrected=2, recovery="none")
    assert reasons(card) == []
    card = read(card, 1000, uncorrected=3, recovery="none")
    assert reasons(card) == ["ecc"]
    assert reasons(read(card, 1299, uncorrected=3, recovery="none")) == ["ecc"]
    assert reasons(read(card, 1300, uncorrected=3, recovery="none")) == []
    away = read(read(card, 1301, lost="GPU is lost"), 1302, uncorrected=3, recovery="none")
    assert "ecc" not in reasons(read(away, 1400, uncorrected=3, recovery="none")), "no new ones"


def test_a_row_that_cannot_be_remapped() -> None:
    """Lasts as long as the card says so."""
    card = read(WELL, 0, remap_failed=True)
    assert reasons(card) == ["remap"]
    assert reasons(read(card, 99_999, remap_failed=True)) == ["remap"]
    assert reasons(read(card, 1, remap_failed=False)) == []


def test_silence_of_all_hardware_evicts_nobody() -> None:
    """A driver that is being updated is not a broken card; what was wrong before stays."""
    quiet = after_silence(read(WELL, 0), "driver not loaded", 5)
    found = taint(quiet, driver="d", effect="NoExecute")
    assert found is not None
    assert (found.value, found.effect) == ("unanswered", "NoSchedule")
    assert status(quiet) == "Unknown"
    assert status(read(quiet, 6)) == "Healthy"
    ill = after_silence(xid(read(WELL, 0), 79, 1), "driver not loaded", 5)
    found = taint(ill, driver="d", effect="NoExecute")
    assert found is not None
    assert (found.value, found.effect) == ("xid-79", "NoExecute")
    assert reasons(read(ill, 6)) == ["xid-79"]


def test_a_taint_keeps_its_time_when_the_reason_changes() -> None:
    """A pod that tolerates the taint for a minute is not given another one."""
    card = xid(read(WELL, 0), 63, 60)
    worse = read(card, 120, lost="GPU is lost")
    found = [taint(state, driver="d", effect="NoExecute") for state in (card, worse)]
    assert [(t.value, t.time_added) for t in found if t] == [
        ("xid-63", "1970-01-01T00:01:00Z"),
        ("lost", "1970-01-01T00:01:00Z"),
    ]
    assert message(worse) == (
        "does not answer: GPU is lost (since 1970-01-01T00:02:00Z); "
        "XID 63 (since 1970-01-01T00:01:00Z)"
    )


STEPS = st.lists(
    st.one_of(
        st.integers(1, 170),
        st.just("silence"),
        st.fixed_dictionaries(
            {},
            optional={
                "lost": st.just("gone"),
                "uncorrected": st.integers(0, 3),
                "remap_failed": st.booleans(),
                "recovery": st.sampled_from(["none", "gpu-reset", "node-reboot"]),
            },
        ),
    ),
    max_size=30,
)


@given(STEPS, st.floats(0.1, 400))
def test_whatever_happens_a_card_that_was_reset_and_is_well_recovers(
    steps: list[Any], pause: float
) -> None:
    """Nothing sticks for ever, reasons are distinct and fit for the value of a taint."""
    card, at = WELL, 0.0
    for step in steps:
        at += pause
        if step == "silence":
            card = after_silence(card, "no driver", at)
        elif isinstance(step, int):
            card = xid(card, step, at)
        else:
            card = read(card, at, **step)
        found = reasons(card)
        assert len(found) == len(set(found))
        assert all(len(reason) < 64 and reason.replace("-", "").isalnum() for reason in found)
        assert all(problem.since <= problem.last <= at for problem in card.problems)
        assert (status(card) == "Unhealthy") <= bool(message(card))
    for later in (10, 20, 330, 660):
        card = read(card, at + later, uncorrected=0, recovery="none")
    assert reasons(card) == []


@pytest.mark.parametrize("back", [1, 86_400])
def test_a_clock_that_was_set_back_keeps_no_card_ill(back: float) -> None:
    """The quiet time and the time to settle count from when that was noticed."""
    card = read(read(xid(WELL, 63, 10**6), 10**6, lost="gone"), 10**6 - back)
    assert reasons(card) == ["lost", "xid-63"]
    card = read(card, 10**6 - back + 10)
    assert "lost" not in reasons(card)
    card = read(card, 10**6 - back + 300)
    assert reasons(card) == []
