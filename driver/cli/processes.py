"""The commands that serve a cluster: `quadrant controller`, and those of `node` and `mps`.

Options and their defaults are those of the processes' settings; what they mean is said there. The
processes themselves are imported when they run.
"""

import asyncio
from collections.abc import Coroutine
from typing import Annotated

import msgspec
import typer

from driver.cli import mps, node, scorers
from driver.cli.usage import UsageError, told_by
from driver.controller.policies import Defaults, resolve
from driver.controller.settings import ControllerSettings
from driver.controller.translate import ResourceNames
from driver.obs.lean import import_structlog

_CONTROLLER = ControllerSettings()

Driver = Annotated[str, typer.Option(help="The driver's name.", envvar="QUADRANT_DRIVER")]
Kubeconfig = Annotated[
    str | None,
    typer.Option(help="Default: in-cluster credentials, else KUBECONFIG, else ~/.kube/config."),
]
LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]

# Those that run on every node read their arguments without typer.
_LEAN = {"node": node.call, "mps": mps.call}

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def call(name: str, arguments: list[str]) -> None:
    """Run one of the commands with what followed its name on the command line."""
    if name in _LEAN:
        _LEAN[name](arguments)
        return
    import_structlog()
    app(arguments, prog_name=f"quadrant {name}")


@app.command()
def controller(  # noqa: PLR0913 - one option for each setting
    *,
    driver: Driver = _CONTROLLER.driver,
    kubeconfig: Kubeconfig = None,
    namespace: Annotated[
        str, typer.Option(help="Where the lease and the certificates are.", envvar="POD_NAMESPACE")
    ] = _CONTROLLER.namespace,
    identity: Annotated[
        str, typer.Option(help="What is unique to this replica.", envvar="POD_NAME")
    ] = _CONTROLLER.identity,
    pod_name: Annotated[
        str,
        typer.Option(help="The pod that this replica is; empty outside a pod.", envvar="POD_NAME"),
    ] = _CONTROLLER.pod_name,
    node_policy: Annotated[
        str, typer.Option(help="Node policy where nobody says anything.")
    ] = _CONTROLLER.defaults.node,
    gpu_policy: Annotated[
        str, typer.Option(help="GPU policy where nobody says anything.")
    ] = _CONTROLLER.defaults.gpu,
    scoring_weights: Annotated[
        str, typer.Option(help="Weights where nobody says any, such as slot=1,core=1,memory=3.")
    ] = _CONTROLLER.defaults.weights,
    device_class: Annotated[
        str, typer.Option(help="The class that HAMi's resources are translated to.")
    ] = _CONTROLLER.device_class,
    hami_resource: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name of one of HAMi's resources, such as memory=example.com/vram; "
            "several. The others: count, memoryPercentage, cores, priority."
        ),
    ] = None,
    listen_host: Annotated[
        str, typer.Option(help="Where the webhooks listen.")
    ] = _CONTROLLER.listen_host,
    listen_port: Annotated[int, typer.Option()] = _CONTROLLER.listen_port,
    webhook_address: Annotated[
        list[str],
        typer.Option(help="How the API server reaches them: https://HOST:PORT or service/NAME."),
    ] = list(_CONTROLLER.webhook_addresses),  # noqa: B006 - typer copies it
    certificates: Annotated[
        str, typer.Option(help="Folder with tls.crt and tls.key; empty: made by ourselves.")
    ] = _CONTROLLER.certificates,
    health_host: Annotated[
        str, typer.Option(help="Where the kubelet's probes are answered, in plain HTTP.")
    ] = _CONTROLLER.health_host,
    health_port: Annotated[int, typer.Option()] = _CONTROLLER.health_port,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui", help="Let others than this host see the page /ui, on the port of the probes."
        ),
    ] = _CONTROLLER.ui,
    log_level: LogLevel = "info",
) -> None:
    """Serve the webhooks, keep the ledger, nominate nodes. One leader, any number of replicas."""
    from driver.cli.control import run  # noqa: PLC0415

    settings = ControllerSettings(
        driver=driver,
        kubeconfig=kubeconfig,
        namespace=namespace,
        identity=identity,
        pod_name=pod_name,
        defaults=Defaults(node=node_policy, gpu=gpu_policy, weights=scoring_weights),
        device_class=device_class,
        resources=resource_names(hami_resource or []),
        listen_host=listen_host,
        listen_port=listen_port,
        webhook_addresses=tuple(webhook_address),
        certificates=certificates,
        health_host=health_host,
        health_port=health_port,
        ui=ui,
    )
    with told_by("--node-policy, --gpu-policy, --scoring-weights"):
        resolve(None, None, {}, None, defaults=settings.defaults, registry=scorers.installed())
    _serve(run(settings), log_level)


def resource_names(told: list[str]) -> ResourceNames:
    """Each RESOURCE=NAME renames one resource; the others keep HAMi's names.

    Raises `UsageError`.
    """
    pairs = dict(one.partition("=")[::2] for one in told)
    try:
        return msgspec.convert(pairs, ResourceNames)
    except msgspec.ValidationError as error:
        raise UsageError(f"--hami-resource: {error}") from error


def _serve(process: Coroutine[None, None, None], log_level: str) -> None:
    from driver.obs import logging, tracing  # noqa: PLC0415

    logging.configure(log_level)
    tracing.configure("quadrant-controller")
    asyncio.run(process)
