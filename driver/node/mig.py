"""How a card can be cut into MIG partitions, and which it is cut into now.

Plain data, as the hardware tells it; nothing of Kubernetes. A partition is a GPU instance with the
one compute instance that fills it.
"""

import msgspec


class MigProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of partition: what it has, and where on the card it may begin."""

    # As NVIDIA writes it: "1g.10gb", "3g.40gb", "1g.10gb+me".
    name: str
    # Memory slices that it takes, from its start on.
    size: int
    # The first memory slice of every place where it may lie.
    starts: tuple[int, ...]
    # Bytes.
    memory: int
    multiprocessors: int
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0


class MigInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One partition that is there."""

    uuid: str
    # Name of its profile.
    profile: str
    start: int
    size: int


class MigCapability(msgspec.Struct, frozen=True, kw_only=True):
    """What MIG means for one card; a card that has no MIG has none of this.

    `pending` differs from `enabled` while a change waits for the card's reset.
    """

    enabled: bool
    pending: bool
    profiles: tuple[MigProfile, ...] = ()
    instances: tuple[MigInstance, ...] = ()
