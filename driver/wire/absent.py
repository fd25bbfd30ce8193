"""JSON null stands for what is absent: so Kubernetes writes an empty list where it must write one.

A ResourceClaim that asks for nothing has `"requests": null`.
"""

from typing import Any

import msgspec


def without_nulls(document: bytes) -> bytes:
    """The same JSON without the members of objects that are null.

    Raises `msgspec.MsgspecError` for what is no JSON, or has numbers that nobody can hold.
    """
    return msgspec.json.encode(_without(msgspec.json.decode(document)))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without(element) for element in value]
    return value
