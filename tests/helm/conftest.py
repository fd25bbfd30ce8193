"""The chart, for tests that render it."""

import pytest

from hack.kubernetes import binaries, layout
from tests.helm.chart import Chart


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart, rendered by the Helm that hack/cluster builds."""
    helm = binaries._tools(layout.cache()).folder / "helm"
    if not helm.exists():
        pytest.skip("Helm is not built: run `hack/cluster build` first")
    return Chart(helm)
