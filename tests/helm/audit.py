"""What was the release's accounts not allowed to do? By the API server's own audit log."""

import json
from pathlib import Path

from tests.helm.chart import NAMESPACE, Object

_GROUP = f"system:serviceaccounts:{NAMESPACE}"
_FORBIDDEN = 403
# Requests that a test makes on purpose, with a pod's own token.
PROBE = "quadrant-tests"


def requests(state: Object) -> list[Object]:
    """All requests so far that the accounts of the release made by themselves, in order."""
    log = Path(state["root"]) / "logs" / "audit.log"
    events = map(json.loads, log.read_text().splitlines())
    return [
        event
        for event in events
        if _GROUP in event["user"].get("groups", ()) and event.get("userAgent") != PROBE
    ]


def forbidden(state: Object) -> list[str]:
    """Those that were answered 403, in words."""
    return [
        f"{event['user']['username']} may not {event['verb']} {event['requestURI']}: "
        f"{event['responseStatus'].get('message', '')}"
        for event in requests(state)
        if event.get("responseStatus", {}).get("code") == _FORBIDDEN
    ]
