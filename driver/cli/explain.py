"""`quadrant explain`: from the name of a pod or claim to the account on the screen."""

from collections.abc import Iterator

import msgspec
import typer

from driver.cli import scorers
from driver.cli.asking import Access, ask
from driver.cli.explanation.account import account
from driver.cli.explanation.records import recorded, scheduled
from driver.cli.explanation.report import Account
from driver.cli.explanation.subject import Case, Subject, find, parse, pod_key
from driver.cli.live.listing import Reader
from driver.cli.live.view import Rules, view
from driver.cli.render import console, explanation, structured
from driver.cli.usage import expect_output, told_by
from driver.controller.policies import Defaults, resolve
from driver.kube.rest import Rest

_OUTPUTS = ("table", "json", "yaml")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller was told; a cluster does not show it."""

    driver: str
    node: str
    gpu: str
    weights: str = ""


def explain(text: str, access: Access, told: Told, *, output: str) -> None:
    """Explain `pod/NAME` or `claim/NAME`; raises `UsageError`, or another `QuadrantError`."""
    expect_output(output, _OUTPUTS)
    # Looked at before a cluster is: a word that means nothing is no matter of clusters.
    parse(text, "")
    rules = Rules(
        driver=told.driver,
        defaults=Defaults(node=told.node, gpu=told.gpu, weights=told.weights),
        registry=scorers.installed(),
    )
    with told_by("--node-policy, --gpu-policy, --scoring-weights"):
        resolve(None, None, {}, None, defaults=rules.defaults, registry=rules.registry)

    async def question(rest: Rest) -> Account:
        return await look(rest, parse(text, access.place(rest)), rules)

    found = ask(access, question)
    if output == "table":
        explanation.as_text(found, console.stdout())
    else:
        typer.echo(structured.text(found, output))


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
