"""The commands that look at a cluster, with kubectl's own flags.

Part of the `quadrant` program (`driver.cli.main`); here are only the options. What a command needs
is imported when it runs.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from driver.model.names import DRIVER

if TYPE_CHECKING:
    from driver.cli.asking import Access

app = typer.Typer(rich_markup_mode=None)

Driver = Annotated[str, typer.Option(help="The driver's name.", envvar="QUADRANT_DRIVER")]
Kubeconfig = Annotated[str | None, typer.Option(help="Default: KUBECONFIG, else ~/.kube/config.")]
Context = Annotated[str | None, typer.Option(help="The kubeconfig's context.")]
Timeout = Annotated[
    str, typer.Option(help="How long to wait for the cluster, such as 10s; 0: without end.")
]
Namespace = Annotated[
    str | None, typer.Option("-n", "--namespace", help="Default: that of the context.")
]
Watch = Annotated[
    bool, typer.Option("-w", "--watch", help="Look again every 2 s, show what has changed.")
]


def _complete_node(context: typer.Context, incomplete: str) -> list[str]:
    from driver.cli import completion  # noqa: PLC0415

    options = context.params
    return [*completion.nodes(options.get("kubeconfig"), options.get("context"), incomplete)]


def _complete_cards(context: typer.Context, incomplete: str) -> list[str]:
    from driver.cli import completion  # noqa: PLC0415

    options = context.params
    return [*completion.cards(options.get("kubeconfig"), options.get("context"), incomplete)]


Node = Annotated[str, typer.Argument(help="The node's name.", autocompletion=_complete_node)]
Cards = Annotated[
    list[str],
    typer.Argument(
        help="NODE/GPU, such as node-1/gpu-0 or node-1/0.", autocompletion=_complete_cards
    ),
]


def _access(
    kubeconfig: str | None,
    context: str | None,
    timeout: str,
    *,
    namespace: str | None = None,
    everywhere: bool = False,
) -> "Access":
    from driver.cli.asking import Access  # noqa: PLC0415

    return Access(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        everywhere=everywhere,
        timeout=timeout,
    )


@app.command()
def matrix(  # noqa: PLR0913 - kubectl's flags
    selector: Annotated[
        str, typer.Option("-l", "--selector", help="Only nodes with these labels, such as zone=a.")
    ] = "",
    group_by: Annotated[
        str, typer.Option(help="A node label: nodes with one value stand together.")
    ] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", help="table, wide, json or yaml.")
    ] = "table",
    *,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw with signs that every terminal has.")
    ] = False,
    watch: Watch = False,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Show nodes and GPUs as one picture.

    A row for each node, a cell for each card, with what is free, shared and taken. docs/cli.md
    describes the signs.
    """
    from driver.cli import matrix as command  # noqa: PLC0415

    command.matrix(
        command.Asked(
            driver=driver,
            nodes=selector,
            group_by=group_by,
            output=output,
            ascii_only=ascii_only,
            watch=watch,
        ),
        _access(kubeconfig, context, request_timeout),
    )


@app.command()
def claims(  # noqa: PLR0913 - kubectl's flags
    namespace: Namespace = None,
    selector: Annotated[
        str, typer.Option("-l", "--selector", help="Only claims with these labels.")
    ] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", help="table, wide, json, yaml, csv or name.")
    ] = "table",
    *,
    everywhere: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Of all namespaces.")
    ] = False,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave the line of column names out.")
    ] = False,
    sort_by: Annotated[str, typer.Option(help="A column's name, such as age, score or node.")] = "",
    watch: Watch = False,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """List claims with node, devices, score and policy."""
    from driver.cli import claims as command  # noqa: PLC0415

    command.claims(
        command.Asked(
            driver=driver,
            selector=selector,
            output=output,
            sort_by=sort_by,
            head=not no_headers,
            watch=watch,
        ),
        _access(kubeconfig, context, request_timeout, namespace=namespace, everywhere=everywhere),
    )


@app.command()
def explain(  # noqa: PLR0913 - kubectl's flags, and what a cluster does not show
    subject: Annotated[str, typer.Argument(help="pod/NAME or claim/NAME.")],
    namespace: Namespace = None,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
    *,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
    node_policy: Annotated[
        str, typer.Option(help="The controller's own node policy, if it is not the default.")
    ] = "compact",
    gpu_policy: Annotated[
        str, typer.Option(help="The controller's own GPU policy, if it is not the default.")
    ] = "compact",
    scoring_weights: Annotated[
        str, typer.Option(help="The controller's own weights, if it has any.")
    ] = "",
) -> None:
    """Say why a pod or claim has its devices, or why it has none.

    Reads the cluster once and changes nothing. docs/explain.md describes the parts.
    """
    from driver.cli import explain as command  # noqa: PLC0415

    command.explain(
        subject,
        _access(kubeconfig, context, request_timeout, namespace=namespace),
        command.Told(driver=driver, node=node_policy, gpu=gpu_policy, weights=scoring_weights),
        output=output,
    )


@app.command()
def topo(
    node: Node,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
    *,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Show how the GPUs of a node are connected, and who has them.

    The matrix of `nvidia-smi topo -m`, from what the node plugin publishes.
    """
    from driver.cli import topo as command  # noqa: PLC0415

    access = _access(kubeconfig, context, request_timeout)
    command.topo(node, access, driver=driver, output=output)


@app.command()
def cordon(
    cards: Cards,
    *,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Let nothing new go to a GPU; what runs on it stays.

    Writes an annotation of the node, which its node plugin turns into a taint of the device.
    """
    from driver.cli import cordon as command  # noqa: PLC0415

    access = _access(kubeconfig, context, request_timeout)
    command.cordon(cards, access, driver=driver, closed=True)


@app.command()
def uncordon(
    cards: Cards,
    *,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Let new pods go to a GPU again."""
    from driver.cli import cordon as command  # noqa: PLC0415

    access = _access(kubeconfig, context, request_timeout)
    command.cordon(cards, access, driver=driver, closed=False)


@app.command()
def doctor(
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", help="Where the controller runs; default: found."),
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or yaml.")] = "table",
    *,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Check the installation, with what to do about what is wrong.

    Ends with 1 when something fails. Writes nothing: a pod is created in a dry run.
    """
    from driver.cli import doctor as command  # noqa: PLC0415

    access = _access(kubeconfig, context, request_timeout, namespace=namespace)
    command.doctor(access, driver=driver, output=output)


@app.command()
def snapshot(
    *,
    redact: Annotated[
        bool, typer.Option("--redact", help="Without names, labels and serial numbers of yours.")
    ] = False,
    driver: Driver = DRIVER,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    request_timeout: Timeout = "0",
) -> None:
    """Print a cluster's state, as input for simulate.

    That is nodes, devices, claims and our pods. Reads the cluster once and changes nothing.
    docs/simulate.md says what is in it.
    """
    from driver.cli import snapshot as command  # noqa: PLC0415

    access = _access(kubeconfig, context, request_timeout)
    command.snapshot(access, driver=driver, redact=redact)


@app.command()
def migrate(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", help='Manifests: file, folder, or "-" for stdin.'),
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="diff or yaml.")] = "diff",
    *,
    inventory: Annotated[
        list[str],
        typer.Option(help="Which cards there are, for percentages: an inventory or a snapshot."),
    ] = [],  # noqa: B006 - typer copies it
    kubernetes: Annotated[
        str | None, typer.Option(help="The release whose defaults hold; default: 1.37.")
    ] = None,
    device_class: Annotated[str, typer.Option(help="The class that claims ask for.")] = DRIVER,
) -> None:
    """Rewrite HAMi and device plugin manifests with claims.

    Prints a diff, or the whole files; nothing is written. What an object does not keep is said on
    stderr. docs/hami.md has the rules.
    """
    from driver.cli import migrate as command  # noqa: PLC0415

    command.migrate(
        command.Asked(
            files=files,
            inventory=inventory,
            kubernetes=kubernetes,
            device_class=device_class,
            output=output,
        )
    )
