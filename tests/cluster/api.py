"""What the API server of a test cluster says, and what it is told: plain HTTPS, no client library.

A kept connection makes a question cost milliseconds, so that tests can ask often and need no
sleeps.
"""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

_KINDS = {
    "pods": "/api/v1/namespaces/default/pods",
    "nodes": "/api/v1/nodes",
    "events": "/api/v1/namespaces/default/events",
    "secrets": "/api/v1/namespaces/quadrant-system/secrets",
    "deployments": "/apis/apps/v1/namespaces/default/deployments",
    "claims": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "templates": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "slices": "/apis/resource.k8s.io/v1/resourceslices",
    "taintrules": "/apis/resource.k8s.io/v1/devicetaintrules",
    "webhooks": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}


class RefusedError(Exception):
    """The API server said no; `status` is its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    """One administrator; not for several threads at once."""

    def __init__(self, state: Object) -> None:
        config = json.loads(Path(state["kubeconfig"]).read_text())
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        place = urlsplit(state["server"])
        self._connection = http.client.HTTPSConnection(
            cast("str", place.hostname), place.port, context=context, timeout=40
        )
        self._token = config["users"][0]["user"]["token"]

    def close(self) -> None:
        """End the kept connection."""
        self._connection.close()

    def list(self, kind: str, **params: str) -> list[Object]:
        """All objects of a kind (in the namespace that tests use)."""
        return list(json.loads(self._call("GET", _KINDS[kind], params=params))["items"])

    def get(self, kind: str, name: str) -> Object | None:
        """One object; None when there is none."""
        try:
            found: Object = json.loads(self._call("GET", f"{_KINDS[kind]}/{name}"))
        except RefusedError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise
        return found

    def create(self, kind: str, body: Object, **params: str) -> Object:
        """Create an object; as it is stored."""
        stored: Object = json.loads(self._call("POST", _KINDS[kind], body, params=params))
        return stored

    def patch(self, kind: str, name: str, body: Object, **params: str) -> Object:
        """Merge something into an object; `name` may end in `/status`."""
        stored: Object = json.loads(
            self._call("PATCH", f"{_KINDS[kind]}/{name}", body, params=params)
        )
        return stored

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, if it is there."""
        try:
            self._call("DELETE", f"{_KINDS[kind]}/{name}")
        except RefusedError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def delete_all(self, kind: str) -> None:
        """Delete all objects of a kind (in the namespace that tests use)."""
        self._call("DELETE", _KINDS[kind])

    def log(self, pod: str, container: str) -> str:
        """What a container has written, as its kubelet has it."""
        path = f"{_KINDS['pods']}/{pod}/log"
        return self._call("GET", path, params={"container": container}).decode()

    def _call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": f"application/{kind}",
        }
        data = json.dumps(body) if body is not None else None
        if method != "GET":
            # A kept connection may have been closed by the server; only reads are tried again.
            self._connection.close()
        try:
            return self._exchange(method, f"{path}?{urlencode(params or {})}", data, headers)
        except http.client.RemoteDisconnected:
            if method != "GET":
                raise
        return self._exchange(method, f"{path}?{urlencode(params or {})}", data, headers)

    def _exchange(
        self, method: str, target: str, data: str | None, headers: dict[str, str]
    ) -> bytes:
        try:
            self._connection.request(method, target, body=data, headers=headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RefusedError(answer.status, content.decode(errors="replace"))
        return content
