"""Is there an annotation of our domain that means nothing where it stands?

Of pods and claims admission tells when they are made; nobody is asked about nodes, namespaces and
classes.
"""

from collections.abc import Iterator, Sequence

from driver.cli.checkup.evidence import Evidence
from driver.cli.checkup.finding import Finding, ok, skip, warn
from driver.controller.misplaced import complaints
from driver.model.api import ObjectMeta
from driver.model.keys import On

_CHECK = "annotations"


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each, or one that says that there is none."""
    looked_at: list[tuple[On, str, Sequence[ObjectMeta]]] = [
        (On.NODE, evidence.nodes.unseen, [one.metadata for one in evidence.nodes.items]),
        (
            On.NAMESPACE,
            evidence.namespaces.unseen,
            [one.metadata for one in evidence.namespaces.items],
        ),
        (On.CLASS, evidence.classes.unseen, [one.metadata for one in evidence.classes.items]),
    ]
    found = [
        complaint
        for kind, _, objects in looked_at
        for metadata in objects
        for complaint in complaints(metadata, kind, f"{kind} {metadata.name}")
    ]
    yield from (
        warn(_CHECK, complaint, "correct the key, or take it away: docs/reference/annotations.md")
        for complaint in found
    )
    unseen = [why for _, why, _ in looked_at if why]
    yield from (skip(_CHECK, why) for why in unseen)
    if not found and not unseen:
        yield ok(_CHECK, "all of ours on nodes, namespaces and classes mean something there")
