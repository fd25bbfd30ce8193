"""The `quadrant` program: its commands and how its errors are told.

`kubectl-quadrant` is the same program. A command's own modules are imported when it runs: nobody
waits for a Kubernetes client to read a help text.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from driver.cli import kubectl
from driver.cli.usage import UsageError
from driver.model.errors import QuadrantError

_KUBECTL_PLUGIN = "kubectl-quadrant"
_DISTRIBUTION = "quadrant-dra"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help in plain text: rich would take three times as long to import as all the rest.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; ends the process with 0, 1 (it failed) or 2 (it was called wrongly)."""
    called = Path(sys.argv[0]).name
    try:
        app(prog_name="kubectl quadrant" if called == _KUBECTL_PLUGIN else "quadrant")
    except QuadrantError as error:
        print(f"quadrant: {error}", file=sys.stderr)  # noqa: T201 - it is for the user
        sys.exit(2 if isinstance(error, UsageError) else 1)


# The processes have an option for each of their settings, whose types take long to import: they
# read their own arguments.
_PASS_ON: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command(add_help_option=False, context_settings=_PASS_ON)
def controller(context: typer.Context) -> None:
    """Serve the webhooks, keep the ledger, nominate nodes."""
    from driver.cli import processes  # noqa: PLC0415

    processes.call("controller", context.args)


@app.command(add_help_option=False, context_settings=_PASS_ON)
def node(context: typer.Context) -> None:
    """Publish the GPUs of one node, prepare claims for its kubelet."""
    from driver.cli import processes  # noqa: PLC0415

    processes.call("node", context.args)


@app.command(add_help_option=False, context_settings=_PASS_ON)
def mps(context: typer.Context) -> None:
    """Keep the MPS daemons of one node, beside the node plugin."""
    from driver.cli import processes  # noqa: PLC0415

    processes.call("mps", context.args)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        version()
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """A Kubernetes DRA driver that chooses the best GPUs, on two axes: node and GPU."""


@app.command()
def version() -> None:
    """Print the version."""
    from importlib import metadata  # noqa: PLC0415

    try:
        typer.echo(metadata.version(_DISTRIBUTION))
    except metadata.PackageNotFoundError:
        typer.echo("unknown: this checkout is not installed (pip install --editable .)")


# Options of `simulate` that say something about one kind of input only.
_OF_FILES = {"kubernetes": "--kubernetes", "ascii_only": "--ascii"}
_OF_TRACES = {
    "seed": "--seed",
    "until": "--until",
    "departures": "--departures",
    "cpu_only": "--cpu-only",
}


@app.command()
def simulate(  # noqa: PLR0913 - two kinds of input, with what can be said about each
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Option(
            "-f", "--filename", help='Manifests and an inventory: file, folder, or "-" for stdin.'
        ),
    ] = [],  # noqa: B006 - typer copies it
    kubernetes: Annotated[
        str | None,
        typer.Option(help="The release whose defaults hold; default: the snapshot's, or 1.37."),
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", help="table, json or html.")] = "table",
    *,
    policy: Annotated[
        list[str],
        typer.Option(
            help="NODE/GPU, or one name for both, for pods that say nothing; several: compare."
        ),
    ] = [],  # noqa: B006
    fail_below: Annotated[
        list[str],
        typer.Option(help="METRIC=VALUE: end with 1 if a policy stays below, for use in CI."),
    ] = [],  # noqa: B006
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw with signs that every terminal has.")
    ] = False,
    trace: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="NODES TASKS", help="In place of -f: a recorded cluster, as CSV."),
    ] = None,
    seed: Annotated[int, typer.Option(help="For --trace: in which order tasks come.")] = 42,
    until: Annotated[
        float, typer.Option(help="For --trace: tasks for how much of all cards come.")
    ] = 1.3,
    departures: Annotated[
        bool, typer.Option("--departures", help="For --trace: play it with tasks that leave, too.")
    ] = False,
    cpu_only: Annotated[
        str,
        typer.Option(help="For --trace: who places tasks without a card, policy or stock."),
    ] = "policy",
) -> None:
    """Show where manifests would go and why, without a cluster.

    The manifests go through the same admission, placement and commit code as in a cluster.
    docs/simulate.md describes the inventory file, and traces.
    """
    if bool(files) == bool(trace):
        raise UsageError("expected either -f or --trace")
    _refuse(context, _OF_FILES if trace else _OF_TRACES, asked_for="--trace" if trace else "-f")
    if trace:
        from driver.cli import trace as played  # noqa: PLC0415

        played.simulate(
            played.Asked(
                nodes=trace[0],
                tasks=trace[1],
                policies=policy,
                seed=seed,
                until=until,
                departures=departures,
                cpu_only=cpu_only,
                fail_below=fail_below,
                output=output,
            )
        )
        return
    from driver.cli import simulate as command  # noqa: PLC0415

    command.simulate(
        command.Asked(
            files=files,
            kubernetes=kubernetes,
            policies=policy,
            fail_below=fail_below,
            output=output,
            ascii_only=ascii_only,
        )
    )


def _refuse(context: typer.Context, options: Mapping[str, str], *, asked_for: str) -> None:
    """What nobody looks at must not seem to count."""
    for name, option in options.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{option} says nothing with {asked_for}: leave it out")


# Those with kubectl's own flags.
app.add_typer(kubectl.app)
