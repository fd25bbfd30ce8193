"""Who a pod is to its API server: the service account that the kubelet has mounted.

Read here and not by the client library: three files and two variables are a contract of Kubernetes
that does not change, and importing the library costs every node a second of CPU at each start and
25 MiB for as long as the process lives.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from driver.kube.errors import CredentialsError

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# The kubelet writes a new token long before the old one expires; client-go reads it this often.
REFRESH_PERIOD = 60.0


class ServiceAccount:
    """The credentials of the pod that this process runs in."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = FOLDER
        self._clock = clock
        self._url = _url()
        self._token = ""
        self._read_at = 0.0
        self._read()

    @property
    def url(self) -> str:
        """Where the API server is, as pods are told."""
        return self._url

    @property
    def authority(self) -> Path:
        """The file with the certificates that the API server's is checked against."""
        return self._folder / "ca.crt"

    @property
    def namespace(self) -> str:
        """The pod's own; `default` where none is mounted."""
        try:
            return (self._folder / "namespace").read_text().strip() or "default"
        except OSError:
            return "default"

    async def authorization(self) -> str | None:
        """The token as it is in its file, not older than a minute.

        Raises CredentialsError while there is none to be read; it may come back.
        """
        if self._clock() - self._read_at >= REFRESH_PERIOD:
            self._read()
        return f"Bearer {self._token}"

    async def renew(self, refused: str | None) -> bool:
        """Read the file now; whether it has another token than the refused one."""
        self._read()
        return await self.authorization() != refused

    def _read(self) -> None:
        file = self._folder / "token"
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise CredentialsError(
                f"the token of this pod's service account cannot be read: {error}"
            ) from error
        if not token:
            raise CredentialsError(
                f"the token of this pod's service account cannot be read: {file} is empty"
            )
        self._token, self._read_at = token, self._clock()


def _url() -> str:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port or not (FOLDER / "token").exists():
        raise CredentialsError(
            "no kubeconfig ($KUBECONFIG, ~/.kube/config), and this is no pod with an account"
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
