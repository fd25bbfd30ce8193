"""What another version of the plugin would have written."""

import json
import zlib
from typing import Any


def written_by_the_next(line: bytes) -> bytes:
    """The checkpoint's line as a version writes it that says more of records, claims, devices."""
    record: dict[str, Any] = json.loads(line)["record"]
    record["written"] = {"by": "the next version", "at": [1, 2.5, None]}
    if entry := record.get("claim"):
        entry["colour"] = "blue"
        for device in entry["devices"]:
            device["slices"] = [{"id": 7}]
    body = json.dumps(record).encode()
    return b'{"checksum":"%08x","record":%s,"signed":"no"}' % (zlib.crc32(body), body)
