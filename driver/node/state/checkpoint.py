"""What the checkpoint says: the claims prepared on this node, as lines of a journal.

Pure. The file only grows until it is compacted, so that what a claim costs does not depend on how
many others are held. One line is `{"checksum": ..., "record": {...}}`; the checksum covers the
bytes of the record as they stand, so that fields added by a later version do not spoil it, and a
damaged line costs that line only. Lines of live claims are kept byte for byte when the file is
compacted: what a later version wrote survives a downgrade and comes back with the upgrade.
"""

import sys
import zlib
from collections.abc import Sequence

import msgspec

from driver.node.errors import StorageError
from driver.node.held import PreparedClaim

# Raised only when an older plugin could not act rightly on what a newer one writes; fields are
# added without that.
VERSION = 1

# What many claims of a node have in common.
_OF_CLAIMS = ("namespace", "boot")
_OF_DEVICES = ("request", "pool", "device", "uuid", "model", "pci_bus_id", "vendor_device")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change: `claim` is prepared or about to be; without it, claim `uid` is gone."""

    version: int
    uid: str
    claim: PreparedClaim | None = None


class _Line(msgspec.Struct, frozen=True):
    checksum: str
    record: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    version: int


class DamagedLine(msgspec.Struct, frozen=True):
    """A line that is not what was written, or that this version cannot read."""

    line: bytes
    reason: str


def put(claim: PreparedClaim) -> Record:
    """The record that a claim is held."""
    return Record(version=VERSION, uid=claim.uid, claim=claim)


def drop(uid: str) -> Record:
    """The record that a claim is not held any more; also of one that never was."""
    return Record(version=VERSION, uid=uid)


def encode(record: Record) -> bytes:
    """The line of a record, with its line end."""
    return _line(record) + b"\n"


def decode(line: bytes) -> Record | DamagedLine:
    """The record of a line without its line end.

    Raises `StorageError` for a record of a version that only a newer plugin understands.
    """
    try:
        envelope = msgspec.json.decode(line, type=_Line)
        if envelope.checksum != _checksum(bytes(envelope.record)):
            return DamagedLine(line, "the checksum does not fit")
        version = msgspec.json.decode(envelope.record, type=_Versioned).version
        if version > VERSION:
            raise StorageError(
                f"the checkpoint has records of version {version}, this plugin understands "
                f"{VERSION}: run the newer plugin, or drain the node and remove the checkpoint"
            )
        return msgspec.json.decode(envelope.record, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return DamagedLine(line, str(error))


def _line(record: Record) -> bytes:
    body = msgspec.json.encode(record)
    return msgspec.json.encode(_Line(_checksum(body), msgspec.Raw(body)))


def _checksum(body: bytes) -> str:
    return f"{zlib.crc32(body):08x}"


def _share_texts(claim: PreparedClaim) -> None:
    """Let equal texts be one: what is said of a card is said in each of its claims."""
    for part, names in ((claim, _OF_CLAIMS), *((device, _OF_DEVICES) for device in claim.devices)):
        for name in names:
            value = getattr(part, name)
            if value:
                msgspec.structs.force_setattr(part, name, sys.intern(value))


class Book:
    """The claims that a journal leaves, found by UID and by card.

    Only the thread that holds the journal's lock may touch it.
    """

    def __init__(self) -> None:
        self._claims: dict[str, PreparedClaim] = {}
        # Only of claims that another version has written: ours can be written anew.
        self._lines: dict[str, bytes] = {}
        self._holders: dict[int, set[str]] = {}
        self.line_count = 0

    def apply(self, line: bytes) -> Record | DamagedLine:
        """Take in one line (without its line end); what it is. A damaged one changes nothing."""
        record = decode(line)
        if isinstance(record, DamagedLine):
            return record
        self.line_count += 1
        self._forget(record.uid)
        if record.claim is not None:
            _share_texts(record.claim)
            self._claims[record.uid] = record.claim
            if line != _line(record):
                self._lines[record.uid] = line
            for device in record.claim.devices:
                self._holders.setdefault(device.index, set()).add(record.uid)
        return record

    def get(self, uid: str) -> PreparedClaim | None:
        """A claim, if it is held."""
        return self._claims.get(uid)

    def claims(self) -> tuple[PreparedClaim, ...]:
        """All claims, in the order in which they were last written."""
        return tuple(self._claims.values())

    def rivals(self, claim: PreparedClaim) -> tuple[PreparedClaim, ...]:
        """The claims that hold anything of the cards of `claim`, itself left out."""
        cards = {device.index for device in claim.devices}
        uids = set[str]().union(*(self._holders.get(index, set()) for index in cards))
        return tuple(self._claims[uid] for uid in sorted(uids - {claim.uid}))

    def compacted(self) -> Sequence[bytes]:
        """The lines that give this book, each without its line end."""
        return tuple(
            self._lines.get(uid) or _line(put(claim)) for uid, claim in self._claims.items()
        )

    def __len__(self) -> int:
        """How many claims are held."""
        return len(self._claims)

    def _forget(self, uid: str) -> None:
        old = self._claims.pop(uid, None)
        self._lines.pop(uid, None)
        for device in old.devices if old is not None else ():
            self._holders[device.index].discard(uid)
