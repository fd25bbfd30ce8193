import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from driver.kube import account
from driver.kube import session as module
from driver.kube.errors import CredentialsError, Unauthorized, Unreachable
from driver.kube.rest import ONCE, Rest
from driver.kube.session import open_session
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.kube.tls import loopback_certificate

NODES = "/api/v1/nodes"
Kubeconfig = Callable[..., str]


@pytest.fixture(autouse=True)
def _no_cluster_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> Kubeconfig:
    """Writes a kubeconfig for the fake server with a given user; gives its path."""

    def write(user: dict[str, Any], url: str = server.url) -> str:
        path = tmp_path / "kubeconfig"
        context = {"cluster": "c", "user": "u", "namespace": "team"}
        config = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": context}],
            "current-context": "x",
        }
        path.write_text(yaml.safe_dump(config))
        return str(path)

    return write


def demand(server: ApiServer, *tokens: str) -> list[str]:
    """Let the server accept only these tokens; gives a live list of what it was shown."""
    shown: list[str] = []

    def check(request: web.Request) -> web.Response | None:
        shown.append(request.headers.get("Authorization", ""))
        if shown[-1].lower() in {f"bearer {token}" for token in tokens}:
            return None
        return web.json_response(Refusal(401, "Unauthorized").status(), status=401)

    server.faults.append(check)
    return shown


async def test_a_token_of_a_kubeconfig_is_shown(
    server: ApiServer, kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is found by $KUBECONFIG; its context names the namespace."""
    demand(server, "secret")
    monkeypatch.setenv("KUBECONFIG", kubeconfig({"token": "secret"}))
    async with open_session() as session:
        assert session.endpoint.namespace == "team"
        await Rest(session).get(NODES)


async def test_a_refused_token_without_a_source_is_an_error(
    server: ApiServer, kubeconfig: Kubeconfig
) -> None:
    """A fixed token that is refused is shown once only."""
    shown = demand(server, "other")
    async with open_session(kubeconfig({"token": "secret"})) as session:
        with pytest.raises(Unauthorized):
            await Rest(session).get(NODES)
    assert shown == ["Bearer secret"]


async def test_a_token_file_is_read_again_when_its_token_is_refused(
    server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path
) -> None:
    """A rotated token is picked up without a restart."""
    token = tmp_path / "token"
    token.write_text("one")
    shown = demand(server, "two")
    async with open_session(kubeconfig({"tokenFile": str(token)})) as session:
        token.write_text("two")
        await Rest(session).get(NODES)
    assert shown == ["Bearer one", "Bearer two"]


async def test_a_token_file_is_read_again_after_a_minute(
    server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an old token is refused at all."""
    monkeypatch.setattr(module, "REFRESH_PERIOD", -1.0)
    token = tmp_path / "token"
    token.write_text("one")
    shown = demand(server, "two")
    async with open_session(kubeconfig({"tokenFile": str(token)})) as session:
        token.write_text("two")
        await Rest(session).get(NODES)
    assert shown == ["Bearer two"]


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    """A user whose credentials come from a shell script."""
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(path), "interactiveMode": "Never"}}


async def test_an_exec_plugin_is_asked_again_when_its_token_is_refused(
    server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path
) -> None:
    """Each run gives the next token; one that does not expire is kept until it is refused."""
    (tmp_path / "count").write_text("")
    answer = json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": "t@"},
        }
    )
    script = f"cd {tmp_path}; echo x >> count; echo '{answer}' | sed s/@/$(wc -w < count)/"
    shown = demand(server, "t2")
    async with open_session(kubeconfig(plugin(tmp_path, script))) as session:
        await Rest(session).get(NODES)
        await Rest(session).get(NODES)
    assert shown == ["Bearer t1", "Bearer t2", "Bearer t2"]


async def test_a_failing_exec_plugin_is_named(kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    """Instead of going on without credentials."""
    path = kubeconfig(plugin(tmp_path, "exit 1"))
    with pytest.raises(CredentialsError, match=f"{tmp_path}/plugin .* gave no credentials"):
        async with open_session(path):
            pass


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "cannot be used"), ("current-context: x\n", "cannot be used"), (None, "no kubeconfig")],
)
async def test_an_unusable_kubeconfig_is_named(
    tmp_path: Path, content: str | None, words: str
) -> None:
    """Broken YAML, missing parts, no file at all: the path is in the sentence."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsError, match=words) as caught:
        async with open_session(str(path)):
            pass
    assert str(path) in str(caught.value)


async def test_without_kubeconfig_and_pod_there_is_no_cluster() -> None:
    """The sentence names what was looked for."""
    with pytest.raises(CredentialsError, match=r"KUBECONFIG.*no pod"):
        async with open_session():
            pass


async def test_a_context_may_be_chosen(kubeconfig: Kubeconfig) -> None:
    """An unknown one is an error."""
    path = kubeconfig({"token": "secret"})
    async with open_session(path, context="x") as session:
        assert session.endpoint.namespace == "team"
    with pytest.raises(CredentialsError, match="with name y"):
        async with open_session(path, context="y"):
            pass


@pytest.fixture
def service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where a pod finds its token, CA and namespace; the token is t1."""
    (tmp_path / "token").write_text("t1\n")
    (tmp_path / "namespace").write_text("quadrant")
    monkeypatch.setattr(account, "FOLDER", tmp_path)
    return tmp_path


async def test_a_pod_uses_its_service_account(
    monkeypatch: pytest.MonkeyPatch, service_account: Path
) -> None:
    """TLS against the mounted CA, the mounted token, the pod's namespace; renewed when refused."""
    _, tls = loopback_certificate(service_account)
    async with ApiServer(tls=tls) as server:
        shown = demand(server, "t2")
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        async with open_session() as session:
            assert session.endpoint.namespace == "quadrant"
            (service_account / "token").write_text("t2\n")
            await Rest(session).get(NODES)
    assert shown == ["Bearer t1", "Bearer t2"]


async def test_a_token_that_cannot_be_read_is_an_error_for_now(
    monkeypatch: pytest.MonkeyPatch, service_account: Path
) -> None:
    """The mounted token is empty while it is rotated: the next call finds it again."""
    _, tls = loopback_certificate(service_account)
    async with ApiServer(tls=tls) as server:
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        monkeypatch.setattr(account, "REFRESH_PERIOD", 0.0)
        async with open_session() as session:
            (service_account / "token").write_text("")
            with pytest.raises(CredentialsError, match="service account cannot be read"):
                await Rest(session).get(NODES)
            (service_account / "token").write_text("t2")
            await Rest(session).get(NODES)


async def test_a_server_of_another_ca_is_not_trusted(
    kubeconfig: Kubeconfig, tmp_path: Path
) -> None:
    """No request is sent to a server whose certificate is not known."""
    _, tls = loopback_certificate(tmp_path)
    async with ApiServer(tls=tls) as server:
        async with open_session(kubeconfig({"token": "secret"}, server.url)) as session:
            with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                await Rest(session, policy=ONCE).get(NODES)
        assert server.requests == []


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
async def test_an_account_that_is_not_whole_is_named(
    monkeypatch: pytest.MonkeyPatch, service_account: Path, missing: str
) -> None:
    """Without its token this is no pod with an account; without the CA the file is said."""
    (service_account / "ca.crt").touch()
    (service_account / missing).unlink()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    words = {"token": "no pod with an account", "ca.crt": "certificates of this pod"}[missing]
    with pytest.raises(CredentialsError, match=words):
        async with open_session():
            pass


async def test_an_address_of_ipv6_stands_in_brackets(
    monkeypatch: pytest.MonkeyPatch, service_account: Path
) -> None:
    """As a URL wants it."""
    loopback_certificate(service_account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    async with open_session() as session:
        assert session.endpoint.url == "https://[fd00::1]:443"


def test_the_client_library_is_not_imported_before_it_is_needed() -> None:
    """Help texts must not pay for it."""
    script = "import sys, driver.kube.session; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
