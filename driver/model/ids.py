"""How the things of the cluster are named, and in which order names stand."""

from typing import NamedTuple, NewType

ClaimUid = NewType("ClaimUid", str)
NodeName = NewType("NodeName", str)
ShareId = NewType("ShareId", str)


class DeviceId(NamedTuple):
    """One device of the cluster; tuples compare in the order the scheduler sorts pools in."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolId(NamedTuple):
    """One pool of the cluster."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class ObjectKey(NamedTuple):
    """A namespaced object's place."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
