"""`quadrant claims`: who has which devices, since when, and by which policy."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer

from driver.cli import scorers
from driver.cli.asking import Access, ask, follow
from driver.cli.fleet import claims as rows
from driver.cli.fleet.claims import Told
from driver.cli.fleet.events import Said, said
from driver.cli.fleet.look import Look, Wanted, look
from driver.cli.fleet.report import Claim, Claims
from driver.cli.render import claims as table
from driver.cli.render import screen, structured
from driver.cli.usage import UsageError, expect_output
from driver.controller.policies import Defaults, Policies, Setting, Source, resolve
from driver.kube.errors import Forbidden
from driver.kube.rest import Rest
from driver.model.core import Pod
from driver.model.errors import QuadrantError
from driver.model.resourceclaim import ResourceClaim
from driver.policy.registry import Registry

_OUTPUTS = ("table", "wide", "json", "yaml", "csv", "name")
# What the controller was told stands in no object of the cluster.
_UNSAID = Defaults(node="compact", gpu="compact")
_SORTS: Mapping[str, Callable[[Claim], Any]] = {
    "namespace": lambda one: one.namespace,
    "name": lambda one: one.name,
    "class": lambda one: one.classes,
    "state": lambda one: one.state,
    "node": lambda one: (not one.node, one.node),
    "devices": lambda one: (one.node, [device.index for device in one.devices]),
    "score": lambda one: (one.score is None, -(one.score or 0.0)),
    "policy": lambda one: one.policy,
    "pod": lambda one: one.pod,
    # As kubectl sorts by creationTimestamp: the oldest first.
    "age": lambda one: one.created,
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for; `selector` is one of labels."""

    driver: str
    selector: str = ""
    output: str = "table"
    sort_by: str = ""
    head: bool = True
    watch: bool = False


class _Found(msgspec.Struct, frozen=True):
    claims: Claims
    missing: tuple[str, ...]


def claims(asked: Asked, access: Access) -> None:
    """Show the claims; raises `QuadrantError`."""
    expect_output(asked.output, _OUTPUTS)
    if asked.sort_by.lower() not in ("", *_SORTS):
        raise UsageError(f"--sort-by {asked.sort_by!r}: expected one of {', '.join(_SORTS)}")
    question = _question(asked, access)
    if asked.watch:
        follow(access, question, lambda found: _show(found, asked, access, again=True))
    else:
        _show(ask(access, question), asked, access, again=False)


def _question(asked: Asked, access: Access) -> Callable[[Rest], Awaitable[_Found]]:
    async def question(rest: Rest) -> _Found:
        place = access.place(rest)
        wanted = Wanted(driver=asked.driver, namespace=place, claims=asked.selector, policies=True)
        found = await look(rest, wanted)
        missing = found.missing
        try:
            words = await said(rest, place)
        except Forbidden:
            words = {}
            missing = (*missing, "scores are not known: no right to list events")
        return _Found(_claims(found, words, asked), missing)

    return question


def _claims(found: Look, words: Mapping[str, Said], asked: Asked) -> Claims:
    state = found.state
    tell = _Teller(found, words, scorers.installed())
    shown = [
        rows.row(claim, state.inventory, asked.driver, tell)
        for claim in state.claims
        if rows.is_ours(claim, asked.driver, found.classes)
    ]
    shown.sort(key=lambda one: (one.namespace, one.name))
    if asked.sort_by:
        shown.sort(key=_SORTS[asked.sort_by.lower()])
    return Claims(driver=asked.driver, claims=tuple(shown))


class _Teller:
    """What policies hold for a claim, and what was said of it."""

    def __init__(self, found: Look, words: Mapping[str, Said], registry: Registry) -> None:
        self._found, self._words, self._registry = found, words, registry
        self._pods = {pod.metadata.uid: pod for pod in found.state.pods}

    def __call__(self, claim: ResourceClaim) -> Told:
        word = self._words.get(claim.metadata.uid)
        return Told(
            policy=self._policy(claim, word.policy if word is not None else ""),
            score=word.score if word is not None else None,
        )

    def _policy(self, claim: ResourceClaim, gpu_said: str) -> str:
        space = self._found.namespaces.get(claim.metadata.namespace)
        try:
            policies: Policies = resolve(
                claim,
                self._pod(claim),
                self._found.classes,
                space.metadata if space is not None else None,
                defaults=_UNSAID,
                driver=self._found.state.driver,
                registry=self._registry,
            )
        except QuadrantError:
            return "unknown"
        return f"{_value(policies.node, '')}/{_value(policies.gpu, gpu_said)}"

    def _pod(self, claim: ResourceClaim) -> Pod | None:
        owners = (owner.uid for owner in claim.metadata.owner_references)
        users = (user.uid for user in claim.status.reserved_for)
        return next((self._pods[uid] for uid in (*owners, *users) if uid in self._pods), None)


def _value(setting: Setting, heard: str) -> str:
    """The policy; where only the controller's own counts, what it said, or that it does."""
    return setting.value if setting.source != Source.DEFAULT else heard or "default"


def _show(found: _Found, asked: Asked, access: Access, *, again: bool) -> None:
    screen.words(found.missing)
    shown = found.claims
    if asked.output in ("json", "yaml"):
        typer.echo(structured.text(shown, asked.output))
    elif asked.output == "csv":
        typer.echo(table.as_csv(shown.claims, datetime.now(UTC), head=asked.head), nl=False)
    elif asked.output == "name":
        for one in shown.claims:
            typer.echo(f"resourceclaim.resource.k8s.io/{one.name}")
    elif not shown.claims:
        where = "" if access.everywhere else " in this namespace (-A: in all)"
        screen.notice(f"no claims on {asked.driver}{where}")
    else:
        wide = asked.output == "wide"
        lines = table.as_text(
            shown.claims,
            datetime.now(UTC),
            wide=wide,
            head=asked.head,
            namespaces=access.everywhere,
        )
        screen.lines(lines, again=again)
