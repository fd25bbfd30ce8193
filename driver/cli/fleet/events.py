"""What the controller said when it gave a claim its devices, read off its events.

The API server keeps events for an hour by default; what was said before that is not known any more.
"""

import re
from collections.abc import Iterable

import msgspec

from driver.kube.rest import Rest
from driver.model.api import ApiStruct
from driver.model.events import DEVICES_CHOSEN

# The sentence of `driver.controller.sentence.told`: "NODE/DEVICE, … by POLICY, score POINTS (…); …"
_SENTENCE = re.compile(r"^.*? by (?P<policy>[^;(]*?)(?:, score (?P<score>-?[0-9.]+).*?)?(?:;|$)")
_ABOUT = f"involvedObject.kind=ResourceClaim,reason={DEVICES_CHOSEN.reason}"


class Said(msgspec.Struct, frozen=True):
    """The GPU policy that decided, and the score by its first policy."""

    policy: str
    score: float | None


class _About(ApiStruct, frozen=True, kw_only=True):
    uid: str = ""


class _Event(ApiStruct, frozen=True, kw_only=True):
    message: str = ""
    event_time: str | None = None
    involved_object: _About = _About()


async def said(rest: Rest, namespace: str) -> dict[str, Said]:
    """The last word on each claim by its UID, of one namespace or of all (""); raises KubeError."""
    place = f"/namespaces/{namespace}" if namespace else ""
    found: list[_Event] = []
    async for page in rest.pages(f"/api/v1{place}/events", params={"fieldSelector": _ABOUT}):
        found += [msgspec.json.decode(raw, type=_Event) for raw in page.items or ()]
    return _last(found)


def _last(events: Iterable[_Event]) -> dict[str, Said]:
    ordered = sorted(events, key=lambda event: event.event_time or "")
    pairs = ((event.involved_object.uid, read(event.message)) for event in ordered)
    return {uid: word for uid, word in pairs if word is not None}


def read(sentence: str) -> Said | None:
    """What a sentence of ours says; None for any other."""
    match = _SENTENCE.match(sentence)
    if match is None:
        return None
    return Said(match["policy"], float(match["score"]) if match["score"] else None)
