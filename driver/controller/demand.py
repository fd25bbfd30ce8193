"""Which requests are usual in this cluster: counted from the claims that have devices of ours.

What a claim was given says what it asked for: how many devices, and how much of each. Which models
would have done, and how much CPU goes with it, a claim does not say, so the mix does not either.
"""

from collections import Counter
from collections.abc import Iterator

from driver.model.ids import ClaimUid
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from driver.policy.mix import UNKNOWN, Mix, Shape

# The mix is made anew after so many claims have come or gone, and a part of all: what policies
# have worked out for it holds in between.
_FEWEST_CHANGES = 16
_CHANGED_PART = 4
# A mix that differs from the one in use in less than this part of all requests is not used: every
# node has to be scored anew for another one.
_NOTICEABLE = 0.02
# So many shapes say what is usual.
_MOST_SHAPES = 48

# How many devices, and how much of each by name; all of it where that is empty.
_Kind = tuple[int, tuple[tuple[str, int], ...]]


class Demand:
    """Counts requests. `version` is another whenever `mix` is.

    Depends on the claims that were seen and their order, and on nothing else.
    """

    def __init__(self, driver: str) -> None:
        self.mix = UNKNOWN
        self.version = 0
        self._driver = driver
        self._of: dict[ClaimUid, tuple[_Kind, ...]] = {}
        self._numbers: Counter[_Kind] = Counter()
        self._changes = 0

    def observe(self, claim: ResourceClaim) -> None:
        """A claim as it is now; it counts while it has devices of ours."""
        uid, kinds = ClaimUid(claim.metadata.uid), tuple(_kinds(claim, self._driver))
        if kinds == self._of.get(uid, ()):
            return
        self._uncount(uid)
        if kinds:
            self._of[uid] = kinds
            self._numbers.update(kinds)
        self._changed()

    def forget(self, uid: ClaimUid) -> None:
        """A claim is gone."""
        if uid in self._of:
            self._uncount(uid)
            self._changed()

    def _uncount(self, uid: ClaimUid) -> None:
        self._numbers.subtract(self._of.pop(uid, ()))

    def _changed(self) -> None:
        self._changes += 1
        if self._changes >= max(_FEWEST_CHANGES, len(self._of) // _CHANGED_PART):
            self._changes = 0
            self._numbers = +self._numbers
            made = self._made()
            if _distance(made, self.mix) > _NOTICEABLE:
                self.mix = made
                self.version += 1

    def _made(self) -> Mix:
        usual = sorted(self._numbers.items(), key=lambda item: (-item[1], item[0]))[:_MOST_SHAPES]
        shapes = (
            Shape(weight=number, count=count, amounts=dict(amounts))
            for (count, amounts), number in usual
        )
        return Mix(tuple(shapes)) if usual else UNKNOWN


def _distance(one: Mix, other: Mix) -> float:
    """The part of all requests that would have to be others to make one mix of the other."""
    ours, theirs = _parts(one), _parts(other)
    return sum(abs(ours[kind] - theirs[kind]) for kind in ours | theirs) / 2


def _parts(mix: Mix) -> Counter[_Kind]:
    total = sum(shape.weight for shape in mix.shapes)
    return Counter(
        {(one.count, tuple(one.amounts.items())): one.weight / total for one in mix.shapes}
    )


def _kinds(claim: ResourceClaim, driver: str) -> Iterator[_Kind]:
    """One for each request that was given devices of ours; they are as many of one size."""
    allocation = claim.status.allocation
    by_request: dict[str, list[DeviceRequestAllocationResult]] = {}
    for result in allocation.devices.results if allocation is not None else ():
        if result.driver == driver and not result.admin_access:
            by_request.setdefault(result.request, []).append(result)
    for results in by_request.values():
        first = results[0]
        consumed = first.consumed_capacity if first.share_id is not None else {}
        yield len(results), tuple(sorted((name, one.nano) for name, one in consumed.items()))
