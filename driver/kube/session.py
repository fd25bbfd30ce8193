"""Which cluster is meant, and with which credentials: the only module that imports `kubernetes`.

The client library reads kubeconfigs, runs exec plugins and refreshes tokens; its typed models and
its own requests are not used. It is imported on first use, because that costs more than a second,
and not at all in a pod, where the account is read without it.
"""

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from driver.kube.account import ServiceAccount
from driver.kube.errors import CredentialsError
from driver.kube.transport import Credentials, Endpoint, Session

# client-go reads a token file again after this time.
REFRESH_PERIOD = 60.0
# An exec plugin that hangs must not hang its callers.
LOAD_TIMEOUT = 30.0
_DEFAULT_KUBECONFIG = Path("~/.kube/config")


class _Configuration(Protocol):
    """What is read of `kubernetes.aio.client.Configuration`."""

    host: str
    ssl_ca_cert: str | None
    cert_file: str | None
    key_file: str | None
    verify_ssl: bool
    tls_server_name: str | None
    proxy: str | None

    async def get_api_key_with_prefix(self, identifier: str) -> str | None: ...


class _Loader(Protocol):
    """What is used of the kubeconfig loader; it keeps an exec plugin's answer until it expires."""

    current_context: dict[str, Any]

    async def load_and_set(self, configuration: _Configuration) -> None: ...


class KubeconfigCredentials:
    """A kubeconfig's user: token, token file, exec plugin, OIDC, password or certificate."""

    def __init__(
        self, loader: _Loader, configuration: _Configuration, tls: ssl.SSLContext | None
    ) -> None:
        self._loader = loader
        self._configuration = configuration
        self._tls = tls
        self._loaded_at = time.monotonic()
        self._loading = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The header for a token that is not known to have expired."""
        async with self._loading:
            if time.monotonic() - self._loaded_at > REFRESH_PERIOD and self._expires():
                await self._load()
        return await self._token()

    async def renew(self, refused: str | None) -> bool:
        """Ask the source again, an exec plugin even if its answer has not expired.

        Of many requests refused at once, the first asks and the others find the new token.
        """
        async with self._loading:
            if await self._token() != refused:
                return True
            certificate = self._files()
            vars(self._loader).pop("exec_plugin_expiry", None)
            await self._load()
            return (await self._token(), self._files()) != (refused, certificate)

    def _expires(self) -> bool:
        # An exec plugin that names no expiry is asked again only after a 401, as client-go does.
        user = getattr(self._loader, "_user", None) or {}
        return (
            "tokenFile" in user
            or "auth-provider" in user
            or hasattr(self._loader, "exec_plugin_expiry")
        )

    async def _token(self) -> str | None:
        return await self._configuration.get_api_key_with_prefix("BearerToken")

    async def _load(self) -> None:
        certificate = self._files()
        with _explained("the kubeconfig's user has no credentials now"):
            async with asyncio.timeout(LOAD_TIMEOUT):
                await self._loader.load_and_set(self._configuration)
            self._loaded_at = time.monotonic()
            if self._tls is not None and self._files() != certificate:
                _load_certificate(self._tls, self._configuration)

    def _files(self) -> tuple[str | None, str | None]:
        return self._configuration.cert_file, self._configuration.key_file


@contextmanager
def _explained(what: str) -> Iterator[None]:
    # The library answers trouble with whatever its code ran into.
    try:
        yield
    except Exception as error:
        raise CredentialsError(f"{what}: {str(error) or type(error).__name__}") from error


@asynccontextmanager
async def open_session(
    kubeconfig: str | None = None, *, context: str | None = None
) -> AsyncIterator[Session]:
    """Connections to a cluster, closed at the end.

    The cluster is found as kubectl does: the kubeconfig given, `$KUBECONFIG`, `~/.kube/config`,
    the pod this runs in. Raises CredentialsError when there is none, or it cannot be used.
    """
    source = _kubeconfig(kubeconfig)
    endpoint, credentials = await (_from_file(source, context) if source else _from_pod())
    session = Session(endpoint, credentials)
    try:
        yield session
    finally:
        await session.close()


def _kubeconfig(given: str | None) -> str | None:
    paths = given or os.environ.get("KUBECONFIG")
    if paths:
        if any(Path(part).expanduser().exists() for part in paths.split(os.pathsep) if part):
            return paths
        raise CredentialsError(
            f"no kubeconfig at {paths}: name one that exists with --kubeconfig or $KUBECONFIG"
        )
    default = _DEFAULT_KUBECONFIG.expanduser()
    return str(default) if default.exists() else None


async def _from_file(paths: str, context: str | None) -> tuple[Endpoint, Credentials]:
    from kubernetes.aio import client, config  # noqa: PLC0415 # see the module's docstring

    configuration: _Configuration = client.Configuration()
    with _explained(f"the kubeconfig {paths} cannot be used"):
        loader: _Loader = await config.load_kube_config(
            config_file=paths, context=context, client_configuration=configuration
        )
        tls = _tls(configuration)
    namespace = loader.current_context["context"].get("namespace") or "default"
    credentials = KubeconfigCredentials(loader, configuration, tls)
    await _check_exec(paths, loader, configuration)
    return _endpoint(configuration, tls, namespace), credentials


async def _check_exec(paths: str, loader: _Loader, configuration: _Configuration) -> None:
    # The library logs a failed exec plugin and goes on without credentials.
    user = getattr(loader, "_user", None) or {}
    has_token = await configuration.get_api_key_with_prefix("BearerToken")
    if "exec" in user and not has_token and not configuration.cert_file:
        command = user["exec"]["command"]
        raise CredentialsError(
            f"the credential plugin {command} of the kubeconfig {paths} gave no credentials: "
            f"run it by hand to see why"
        )


async def _from_pod() -> tuple[Endpoint, Credentials]:
    account = await asyncio.to_thread(ServiceAccount)
    try:
        tls = _trusting(str(account.authority))
    except OSError as error:
        raise CredentialsError(
            f"the certificates of this pod's API server cannot be read: {error}"
        ) from error
    endpoint = Endpoint(url=account.url, namespace=account.namespace, tls=tls)
    return endpoint, account


def _endpoint(
    configuration: _Configuration, tls: ssl.SSLContext | None, namespace: str
) -> Endpoint:
    return Endpoint(
        url=configuration.host,
        namespace=namespace,
        tls=tls,
        tls_server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )


def _tls(configuration: _Configuration) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https"):
        return None
    context = _trusting(configuration.ssl_ca_cert)
    _load_certificate(context, configuration)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(authority: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority)
    # Cluster CAs are often self-made and lack extensions that strict mode asks for; Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _load_certificate(context: ssl.SSLContext, configuration: _Configuration) -> None:
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
