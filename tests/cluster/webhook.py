"""A mutating webhook of somebody else, called before or after ours: it lets pass, waits or refuses.

Its name decides when it is called: the API server asks webhooks in order of their configurations'
names.
"""

import base64
import contextlib
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from driver.admission.authority import issue, new_authority
from tests.cluster.api import Api, Object

BEFORE_OURS = "a-stranger"
AFTER_OURS = "z-stranger"

# The API server waits for 30 s at most.
_LONGEST_HOLD_S = 28

Judge = Callable[[str], str | None]
"""Told a claim's name; a sentence refuses. May take its time."""


class Hold:
    """Holds back the writes of claims whose names begin so.

    Until it is opened, or until nobody waits for it any more.
    """

    def __init__(self, claim: str) -> None:
        self.timed_out = False
        self._claim = claim
        self._reached = threading.Event()
        self._open = threading.Event()

    @property
    def reached(self) -> bool:
        """Whether a write waits here."""
        return self._reached.is_set()

    def open(self) -> None:
        """Let go what waits, and all that comes."""
        self._open.set()

    def __call__(self, claim: str) -> str | None:
        """Let a write pass, or hold it."""
        if claim.startswith(self._claim):
            self._reached.set()
            self.timed_out |= not self._open.wait(_LONGEST_HOLD_S)
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    judge: Judge


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body)["request"]
        refusal = cast("_Server", self.server).judge(asked["name"])
        response: Object = {"uid": asked["uid"], "allowed": refusal is None}
        if refusal is not None:
            response["status"] = {"code": 403, "message": refusal}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        answer = json.dumps({**review, "response": response}).encode()
        with contextlib.suppress(OSError):  # the caller may have given up
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:  # the tests' output is theirs
        pass


@contextlib.contextmanager
def stranger(api: Api, name: str, judge: Judge) -> Iterator[None]:
    """Ask `judge` about every update of a claim's status that allocates something."""
    now = datetime.now(UTC)
    authority = new_authority("stranger", now=now)
    pair = issue(authority, ["127.0.0.1"], now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "both.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.judge = judge
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    api.create("webhooks", _configuration(name, server.server_port, authority.certificate))
    try:
        yield
    finally:
        api.delete("webhooks", name)
        server.shutdown()
        server.server_close()


def _configuration(name: str, port: int, authority: bytes) -> Object:
    allocates = (
        "(!has(oldObject.status) || !has(oldObject.status.allocation))"
        " && has(object.status) && has(object.status.allocation)"
    )
    client = {
        "url": f"https://127.0.0.1:{port}/",
        "caBundle": base64.b64encode(authority).decode(),
    }
    rule = {
        "operations": ["UPDATE"],
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["resourceclaims/status"],
    }
    webhook = {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "rules": [rule],
        "matchConditions": [{"name": "allocates", "expression": allocates}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 30,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
