"""A snapshot of a real cluster as an input: what it says of the cluster as a whole.

Its items are objects like those of any other file, but with UIDs: they exist already.
"""

from functools import partial

import msgspec

from driver.cli.simulation.documents import Document
from driver.cli.simulation.manifests import check_api_version, reading
from driver.model.allocation import Features
from driver.model.names import DOMAIN
from driver.simulator.releases import Release

API_VERSION = f"{DOMAIN}/v1alpha1"


class _Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kubernetes: str
    features: Features
    extended_resources: bool


def served(document: Document) -> Release:
    """What the cluster served; raises `ManifestError`."""
    check_api_version(document, API_VERSION)
    found = reading(document, partial(msgspec.convert, document.raw, _Header))
    return Release(
        name=found.kubernetes,
        features=found.features,
        extended_resources=found.extended_resources,
    )
