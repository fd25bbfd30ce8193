"""What an account says: the data of the blocks on the screen and of `-o json`.

The JSON is an interface: a change that breaks its readers needs another `apiVersion`.
"""

import msgspec

from driver.model.names import DOMAIN


class _Reported(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts: every field is written, also one that has its default."""


class ScoreTerm(_Reported, frozen=True, kw_only=True):
    """One summand of a score."""

    name: str
    points: float


class PolicyScore(_Reported, frozen=True, kw_only=True):
    """What one policy says; the terms add up to the total."""

    policy: str
    total: float
    terms: tuple[ScoreTerm, ...]


class Option(_Reported, frozen=True, kw_only=True):
    """A node, or a set of devices, that is possible.

    One score for each of the policies that are joined by commas, the deciding one first; none
    where nothing is scored. `behind`: by how much each is less than the chosen one's.
    """

    names: tuple[str, ...]
    scores: tuple[PolicyScore, ...] = ()
    behind: tuple[float, ...] = ()


class Rejected(_Reported, frozen=True, kw_only=True):
    """Why some nodes, or devices, are out of the question: how many, and one of them."""

    reason: str
    count: int
    example: str
    remedy: str = ""


class Axis(_Reported, frozen=True, kw_only=True):
    """One of the two choices, of the node or of devices on it.

    `chosen` is None where nothing fits, or where the policy leaves it to the scheduler.
    `stopped_after`: the search for devices stopped at its bound of so many steps; 0: it did not.
    """

    policy: str
    policy_from: str
    weights: str = ""
    weights_from: str = ""
    chosen: Option | None = None
    runners_up: tuple[Option, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    stopped_after: int = 0


class Recorded(_Reported, frozen=True, kw_only=True):
    """What was said at the time, in an Event or a condition of the object."""

    time: str
    about: str
    reason: str
    note: str


class Account(_Reported, frozen=True, kw_only=True):
    """Everything there is to say.

    `state` is one of allocated, pending, nothing-to-choose. `basis` says which parts are recorded
    and which are computed now.
    """

    api_version: str = f"{DOMAIN}/v1alpha1"
    kind: str = "Explanation"
    subject: str
    state: str
    summary: str
    basis: str
    node: Axis | None = None
    devices: Axis | None = None
    would_fit: tuple[str, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    warnings: tuple[str, ...] = ()
