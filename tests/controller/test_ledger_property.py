"""No device is used twice, whatever the order of events, answers and writes."""

import os
from collections.abc import Callable

import pytest

from driver.controller.ledger import Answer, AnswerKey, Ledger
from driver.model.ids import ClaimUid
from driver.model.resourceclaim import ResourceClaim
from tests.controller import adversary
from tests.controller.adversary import DoubleUseError, World, play

# CI plays 100,000; a million on demand: QUADRANT_LEDGER_RUNS=1000000
RUNS = int(os.environ.get("QUADRANT_LEDGER_RUNS", "5000"))
PARTS = 20
_ANSWER, _OBSERVE = Ledger.answer, Ledger.observe


@pytest.mark.parametrize("part", range(PARTS))
def test_no_double_use(part: int) -> None:
    """The world's etcd finds no double use; the commits say that the runs did something."""
    commits = sum(play(seed).commits for seed in range(part, RUNS, PARTS))
    assert commits > RUNS // PARTS


def _one_answer_only(self: Ledger, answer: Answer) -> None:
    """Rule 2 broken: a later answer to the same base takes the place of the earlier one."""
    self._drop_answers(answer.uid, answer.at)
    _ANSWER(self, answer)


def _hold_nothing(self: Ledger, answer: Answer) -> None:
    """Rule 1 broken: only what is seen counts."""
    del answer


def _believe_old_news(self: Ledger, claim: ResourceClaim, now: float) -> None:
    """Rule 1 broken: an event at or below the base releases the answer."""
    self.gone(ClaimUid(claim.metadata.uid), now)
    _OBSERVE(self, claim, now)


def _drop_without_a_look(self: World) -> None:
    """Rule 4 broken: what is some seconds old falls."""
    for answer in self.ledger.overdue(self.now + 30.0):
        self.ledger.gone(answer.uid, self.now)


def _forget_that_it_was_repeated(self: Ledger, uid: ClaimUid, key: AnswerKey) -> None:
    """Rule 6 broken: an answer that was given twice is taken back when the first was not taken."""
    del uid, key


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Ledger, "answer", _hold_nothing),
        (Ledger, "answer", _one_answer_only),
        (Ledger, "observe", _believe_old_news),
        (World, "expire", _drop_without_a_look),
        (Ledger, "repeat", _forget_that_it_was_repeated),
    ],
)
def test_a_ledger_without_one_of_its_rules_is_found_out(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, broken: Callable[..., object]
) -> None:
    """So the test above can fail."""
    monkeypatch.setattr(owner, name, broken)
    assert _found_out()


def test_a_new_leader_that_does_not_wait_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5 is needed: without the wait an earlier answer lands."""
    monkeypatch.setattr(adversary, "TAKEOVER_WAIT_S", 0.0)
    assert _found_out()


def test_a_new_leader_that_does_not_fence_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the fence, where it stands in for the wait."""
    monkeypatch.setattr(World, "fence_all", lambda self: None)
    assert _found_out()


def _found_out(runs: int = 20_000) -> bool:
    for seed in range(runs):
        try:
            play(seed)
        except DoubleUseError:
            return True
    return False
