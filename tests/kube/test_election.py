import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from driver.kube.election import Election
from driver.kube.lease import Timing
from driver.kube.transport import Session
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Json, Refusal
from tests.kube.watcher import until

LEASES = "/apis/coordination.k8s.io/v1/leases"


class Told:
    """A candidate that writes down what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.deadline = 0.0

    def acquired(self, *, silent_from: float, resumed: bool) -> None:
        """Lead."""
        self.words.append(f"{'resumed' if resumed else 'acquired'} {silent_from:g}")

    def renewed(self, deadline: float) -> None:
        """Lead on."""
        self.deadline = deadline

    def lost(self) -> None:
        """Lead no more."""
        self.words.append("lost")


@pytest.fixture
async def session(server: ApiServer) -> AsyncIterator[Session]:
    """Connections to the empty cluster."""
    async with server.session() as opened:
        yield opened


@pytest.fixture
def told() -> Told:
    """The candidate."""
    return Told()


@pytest.fixture
def election(session: Session, told: Told, clock: FakeClock) -> Election:
    """The candidate's election, identity "me"."""
    return Election(
        session, told, namespace="q", name="lead", identity="me", clock=clock, jitter=lambda: 0.0
    )


def lease(server: ApiServer) -> Json:
    """The record as it is."""
    spec: Json = server.get(LEASES, "lead", "q")["spec"]
    return spec


def hold(server: ApiServer, holder: str, duration: int = 15, renewed: str = "1") -> None:
    """Put somebody else's record there."""
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "renewTime": renewed,
        "leaseTransitions": 4,
    }
    server.put(LEASES, {"metadata": {"name": "lead", "namespace": "q"}, "spec": spec})


async def test_a_lease_that_is_not_there_is_made(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """It may have been deleted under a leader, so that we wait until that one has noticed."""
    await election._turn()
    assert lease(server)["holderIdentity"] == "me"
    assert lease(server)["leaseDurationSeconds"] == 10
    assert told.words == [f"acquired {clock.time + 10:g}"]
    assert told.deadline == clock.time + 7
    assert election.still_leader(clock.time + 6.9)
    assert not election.still_leader(clock.time + 7)


async def test_a_free_lease_is_taken_at_once(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """Its last holder gave it back, so nobody believes to lead."""
    hold(server, "")
    await election._turn()
    assert told.words == [f"acquired {clock.time:g}"]
    assert lease(server)["leaseTransitions"] == 5


async def test_a_held_lease_is_taken_when_it_stood_still_for_its_duration(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """The time is our own since we saw the last change; a change starts it anew."""
    hold(server, "other", duration=30)
    await election._turn()
    clock.time += 29
    await election._turn()
    hold(server, "other", duration=30, renewed="2")
    await election._turn()
    clock.time += 29
    await election._turn()
    assert told.words == []
    clock.time += 1
    await election._turn()
    assert told.words == [f"acquired {clock.time:g}"]


async def test_a_lease_that_runs_out_is_taken_at_that_moment(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """Until then, whoever waits looks every second, so as to see a lease that is given back."""
    hold(server, "other", duration=10)
    await election._turn()
    assert election._pause() == pytest.approx(1.0)
    clock.time += 9.6
    await election._turn()
    assert election._pause() == pytest.approx(0.4)
    clock.time += election._pause()
    await election._turn()
    assert told.words == [f"acquired {clock.time:g}"]


async def test_a_lease_that_cannot_be_read_is_looked_at_no_faster(
    server: ApiServer, election: Election, clock: FakeClock
) -> None:
    """It has run out long since, but the API server is down."""
    hold(server, "other", duration=10)
    await election._turn()
    clock.time += 20.0
    server.refuse(Refusal(503, "Down"), times=1)
    await election._turn()
    assert election._pause() == pytest.approx(1.0)


async def test_a_leader_renews(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """Each renewal moves the deadline; the acquire time and the transitions stay."""
    await election._turn()
    before = lease(server)
    clock.time += 2
    await election._turn()
    assert told.deadline == clock.time + 7
    after = lease(server)
    assert after["renewTime"] > before["renewTime"]
    assert after["acquireTime"] == before["acquireTime"]
    assert server.requests[-1].startswith("PATCH")


async def test_a_slow_renewal_is_followed_by_the_next_in_time(
    server: ApiServer, election: Election, clock: FakeClock
) -> None:
    """The time between renewals counts from where they begin; one that fails at once waits, too."""
    await election._turn()
    clock.time += 2.0
    await election._turn()
    clock.time += 1.5
    assert election._pause() == pytest.approx(0.5)
    clock.time += 1.5
    assert election._pause() == 0.0
    server.refuse(Refusal(503, "Down"), times=1)
    await election._turn()
    assert election._pause() == pytest.approx(2.0)


async def test_a_leader_that_cannot_renew_steps_down_at_its_deadline(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """Not before, so that a short outage harms nobody, and not after."""
    await election._turn()
    server.refuse(Refusal(503, "Down"), times=99)
    clock.time += 6.5
    await election._turn()
    assert election.still_leader(clock.time)
    assert election._pause() == pytest.approx(0.5)
    clock.time += 0.5
    assert not election.still_leader(clock.time)
    await election._turn()
    assert told.words[-1] == "lost"


@pytest.mark.parametrize("another", [False, True])
async def test_a_term_is_resumed_only_when_nobody_led_in_between(
    server: ApiServer, election: Election, told: Told, clock: FakeClock, *, another: bool
) -> None:
    """The same record as before the outage; a lease that changed hands and is free again is not."""
    await election._turn()
    server.refuse(Refusal(503, "Down"), times=1)
    clock.time += 7.0
    await election._turn()
    assert told.words[-1] == "lost"
    if another:
        hold(server, "")
    await election._turn()
    assert told.words[-1] == f"{'acquired' if another else 'resumed'} {clock.time:g}"


async def test_a_foreign_write_that_is_no_claim_is_no_loss(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """A label on the Lease costs one conflict; the next renewal goes through."""
    await election._turn()
    item = server.get(LEASES, "lead", "q")
    server.put(LEASES, item | {"metadata": item["metadata"] | {"labels": {"a": "b"}}})
    await election._turn()
    clock.time += 2
    await election._turn()
    assert "lost" not in told.words
    assert told.deadline == clock.time + 7


@pytest.mark.parametrize("event", ["taken", "deleted"])
async def test_a_leader_whose_lease_is_gone_steps_down_at_once(
    server: ApiServer, election: Election, told: Told, event: str
) -> None:
    """Whoever forces a lease away gets it."""
    await election._turn()
    if event == "taken":
        hold(server, "other")
    else:
        server.remove(LEASES, "lead", "q")
    await election._turn()
    assert told.words[-1] == "lost"


async def test_a_lost_answer_is_found_out(
    server: ApiServer, election: Election, told: Told, clock: FakeClock
) -> None:
    """A lease that is ours by a write whose answer never came is taken up."""
    hold(server, "")
    server.hang_up_after("PATCH")
    await election._turn()
    assert told.words == []
    assert lease(server)["holderIdentity"] == "me"
    await election._turn()
    assert told.words == [f"acquired {clock.time:g}"]


async def test_only_one_of_two_gets_a_free_lease(
    server: ApiServer, session: Session, clock: FakeClock
) -> None:
    """The resourceVersion decides between writes at the same time."""
    hold(server, "")
    replicas = [Told(), Told()]
    elections = [
        Election(session, each, namespace="q", name="lead", identity=f"r{n}", clock=clock)
        for n, each in enumerate(replicas)
    ]
    await asyncio.gather(*(each._turn() for each in elections))
    assert sorted(len(each.words) for each in replicas) == [0, 1]


async def test_a_cancelled_leader_gives_its_lease_back(
    server: ApiServer, election: Election, told: Told
) -> None:
    """It stops acting first, and others need not wait."""
    task = asyncio.create_task(election.run())
    await until(lambda: bool(told.words))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert told.words[-1] == "lost"
    assert lease(server)["holderIdentity"] == ""


async def test_a_server_that_says_nothing_cannot_hold_a_leader_beyond_its_deadline(
    server: ApiServer, session: Session, told: Told
) -> None:
    """A renewal that hangs ends in time for the step down; real time, a tenth of a second."""
    timing = Timing(duration=0.3, renew_deadline=0.1, retry=0.02)
    election = Election(session, told, namespace="q", name="l", identity="me", timing=timing)
    task = asyncio.create_task(election.run())
    await until(lambda: bool(told.words))
    server.answering.clear()
    await until(lambda: told.words[-1] == "lost")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
