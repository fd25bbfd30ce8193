"""One cluster of two nodes with Quadrant on it, for all tests that ask for `site`."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.deployment import Deployment
from tests.cluster.api import Api
from tests.cluster.site import Site, hack_cluster

# Each worker of pytest-xdist has a cluster of its own.
NAME = "e2e" + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
NODES = "t4=4xT4,a10g=4xA10G"


@pytest.fixture(scope="session")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The cluster and the processes; at the end its whole history is judged."""
    if os.geteuid() != 0:
        pytest.skip("nodes need root: namespaces and mounts")
    hack_cluster(NAME, "down")
    hack_cluster(NAME, "up", "--nodes", NODES, "--json-storage")
    state = json.loads(hack_cluster(NAME, "status", "-o", "json"))
    deployment = Deployment(state, Path(tmp_path_factory.mktemp("quadrant")))
    try:
        deployment.up()
        with contextlib.closing(Api(state)) as api:
            yield Site(state, deployment, api)
    finally:
        deployment.down()
        hack_cluster(NAME, "down")


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    """The cluster, empty; afterwards nothing of the test is left, and nothing was given twice."""
    yield whole_site
    whole_site.clear()
    assert whole_site.faults() == []
    whole_site.require_no_double_use()
