"""`quadrant explain`: from the name of a pod or claim to the account on the screen."""

import asyncio
from collections.abc import Iterator

import msgspec
import typer

from driver.cli import scorers
from driver.cli.explanation.account import account
from driver.cli.explanation.records import recorded, scheduled
from driver.cli.explanation.report import Account
from driver.cli.explanation.subject import Case, Subject, find, parse, pod_key
from driver.cli.live.listing import Reader
from driver.cli.live.view import Rules, view
from driver.cli.render import console, explanation
from driver.cli.usage import UsageError, told_by
from driver.controller.policies import Defaults, resolve
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.obs import logging

_OUTPUTS = ("table", "json")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster and namespace; None: as kubectl does."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller was told; a cluster does not show it."""

    driver: str
    node: str
    gpu: str
    weights: str = ""


def explain(text: str, place: Place, told: Told, *, output: str) -> None:
    """Explain `pod/NAME` or `claim/NAME`; raises `UsageError`, or another `QuadrantError`."""
    if output not in _OUTPUTS:
        raise UsageError(f"-o: {output!r} is not known: expected {' or '.join(_OUTPUTS)}")
    # Looked at before a cluster is: a word that means nothing is no matter of clusters.
    parse(text, "")
    rules = Rules(
        driver=told.driver,
        defaults=Defaults(node=told.node, gpu=told.gpu, weights=told.weights),
        registry=scorers.installed(),
    )
    with told_by("--node-policy, --gpu-policy, --scoring-weights"):
        resolve(None, None, {}, None, defaults=rules.defaults, registry=rules.registry)
    logging.quietly()
    found = asyncio.run(_ask(text, place, rules))
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        explanation.as_text(found, console.stdout())


async def _ask(text: str, place: Place, rules: Rules) -> Account:
    async with open_session(place.kubeconfig, context=place.context) as session:
        subject = parse(text, place.namespace or session.endpoint.namespace)
        return await look(Rest(session), subject, rules)


async def look(rest: Rest, subject: Subject, rules: Rules) -> Account:
    """List the cluster once and explain; raises `QuadrantError`."""
    reader = Reader(rest)
    listing = await reader.listing(driver=rules.driver)
    key = pod_key(subject, listing.claims)
    known = {(pod.metadata.namespace, pod.metadata.name) for pod in listing.pods}
    if key is not None and key not in known:
        # A pod without our label: the controller does not see it, but it can be explained.
        pod = await reader.pod(key)
        pods = listing.pods if pod is None else (*listing.pods, pod)
        listing = msgspec.structs.replace(listing, pods=pods)
    case = find(subject, view(listing, rules))
    said = await recorded(rest, subject.key.namespace, _objects(case))
    return account(listing, subject, rules, (*said, *scheduled(case.pod)))


def _objects(case: Case) -> Iterator[tuple[str, str]]:
    """Whose events are about the case; those of the pod say the same of its claims."""
    if case.subject.kind == "pod":
        yield f"pod {case.pod.metadata.name}", case.pod.metadata.uid
    else:
        for claim in case.claims:
            yield f"claim {claim.metadata.name}", claim.metadata.uid
