"""Whether a growing set of devices still satisfies the constraints of its claim.

Constraints are monotonic: once a device does not fit, adding others never makes it fit. Each
remembers what was added so that a search can take it back. Knows nothing of devices, only of
attribute values.
"""

from typing import Protocol

from driver.allocator.attributes import Values
from driver.model.allocation import Features
from driver.model.errors import AllocationError
from driver.model.resourceclaim import ResourceClaim


class Constraint(Protocol):
    """One constraint of one claim, with the devices added so far."""

    attribute: str
    requests: frozenset[str]

    def add(self, value: Values | None) -> bool:
        """Take one more device in; false leaves the constraint as it was."""
        ...

    def remove(self) -> None:
        """Forget the device added last."""
        ...


def applies(constraint: Constraint, *, request: str, full_name: str) -> bool:
    """Whether it is about a request; `full_name` is `request` or `request/subrequest`."""
    named = constraint.requests
    return not named or request in named or full_name in named


class MatchAttribute:
    """All devices share a value: the running intersection must not become empty.

    With `lists` off, a list counts as a value that equals nothing, itself included.
    """

    def __init__(self, attribute: str, requests: frozenset[str], *, lists: bool) -> None:
        self.attribute = attribute
        self.requests = requests
        self._lists = lists
        self._common: list[Values] = []

    def add(self, value: Values | None) -> bool:
        """Narrow the common values to those that this device has too."""
        if value is None or not value.elements:
            return False
        if not self._common:
            self._common.append(value)
            return True
        common = self._common[-1]
        if not self._lists and (value.listed or common.listed):
            return False
        both = common.elements & value.elements
        if not both:
            return False
        self._common.append(common if both == common.elements else Values(both, listed=True))
        return True

    def remove(self) -> None:
        """Restore the common values of before."""
        self._common.pop()


class DistinctAttribute:
    """No two devices share a value.

    With `lists` off, a list is accepted for the first device only, and equals nothing.
    """

    def __init__(self, attribute: str, requests: frozenset[str], *, lists: bool) -> None:
        self.attribute = attribute
        self.requests = requests
        self._lists = lists
        self._seen: list[Values] = []

    def add(self, value: Values | None) -> bool:
        """Accept a device whose values none of the others has."""
        if value is None or not value.elements:
            return False
        if self._seen and value.listed and not self._lists:
            return False
        if any(self._share(other, value) for other in self._seen):
            return False
        self._seen.append(value)
        return True

    def remove(self) -> None:
        """Forget the values of the device added last."""
        self._seen.pop()

    def _share(self, one: Values, other: Values) -> bool:
        return bool(one.elements & other.elements) and (self._lists or not one.listed)


def constraints_of(claim: ResourceClaim, claim_name: str, features: Features) -> list[Constraint]:
    """The claim's constraints, without any device yet.

    Raises `AllocationError` for one of an unknown kind.
    """
    made: list[Constraint] = []
    for index, constraint in enumerate(claim.spec.devices.constraints):
        requests = frozenset(constraint.requests)
        lists = features.list_type_attributes
        if constraint.match_attribute is not None:
            made.append(MatchAttribute(constraint.match_attribute, requests, lists=lists))
        elif constraint.distinct_attribute is not None:
            made.append(DistinctAttribute(constraint.distinct_attribute, requests, lists=lists))
        else:
            raise AllocationError(
                f"claim {claim_name}, constraint #{index}: empty constraint (unsupported "
                "constraint type?): expected matchAttribute or distinctAttribute"
            )
    return made
