"""The chart on each Kubernetes that it is for: objects that its API has, field for field.

The schemas are those of Kubernetes' own API descriptions (package kubernetes-validate); nothing is
in an object that the version does not know.
"""

import json

import kubernetes_validate
import pytest

from tests.helm.chart import Chart, Object
from tests.helm.valuesets import OTHERS, VALUES

pytestmark = pytest.mark.cluster

VERSIONS = ("1.34", "1.35", "1.36", "1.37")


@pytest.mark.parametrize("kubernetes", VERSIONS)
def test_every_object_is_one_of_this_version(chart: Chart, kubernetes: str) -> None:
    """Strictly: an unknown field, which an API server would drop in silence, is an error."""
    made = {
        json.dumps(one): (values, one)
        for values, given in VALUES.items()
        for one in chart.render(given, kubernetes=f"{kubernetes}.0")
    }
    complaints = {
        f"{values}: {one['kind']} {one['metadata']['name']}": _complaint(one, kubernetes)
        for values, one in made.values()
        if one["kind"] not in OTHERS
    }
    assert {place: what for place, what in complaints.items() if what} == {}
    assert len(complaints) > len(VALUES)


def _complaint(one: Object, kubernetes: str) -> str:
    try:
        found = kubernetes_validate.validate(one, kubernetes, strict=True)
    except kubernetes_validate.ValidationError as error:
        return str(error)
    return "" if found == kubernetes else f"checked against {found}"


def test_an_unknown_field_would_be_found() -> None:
    """What `strict` is for."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    assert not _complaint({**service, "spec": {"ports": [{"port": 1}]}}, "1.37")
    assert "prots" in _complaint({**service, "spec": {"prots": [{"port": 1}]}}, "1.37")


def test_the_value_sets_make_every_kind_of_object(chart: Chart) -> None:
    """A template that no set of values reaches would be in none of these tests."""
    made = {one["kind"] for values in VALUES.values() for one in chart.render(values)}
    assert made >= OTHERS | {"Secret", "PodDisruptionBudget", "NetworkPolicy", "DeviceClass"}


@pytest.mark.parametrize("kubernetes", ["1.33.9", "1.31.0"])
def test_an_older_kubernetes_is_refused(chart: Chart, kubernetes: str) -> None:
    """resource.k8s.io/v1 is there from 1.34 on."""
    assert f"incompatible with Kubernetes v{kubernetes}" in chart.refused({}, kubernetes=kubernetes)


GATES: dict[str, Object] = {
    "DRADeviceTaints": {},
    "DRAConsumableCapacity": {},
    "DRAPartitionableDevices": {"node": {"settings": {"mig": "dynamic"}}},
    "DRAExtendedResource": {"deviceClass": {"extendedResourceName": "nvidia.com/gpu"}},
}


@pytest.mark.parametrize("gate", GATES)
def test_the_notes_name_the_gates_that_an_old_kubernetes_needs(chart: Chart, gate: str) -> None:
    """An API server drops what it does not know in silence; who installs is told before."""
    assert gate in chart.notes(GATES[gate], kubernetes="1.35.0")
    assert gate not in chart.notes(GATES[gate], kubernetes="1.36.0")
    if GATES[gate]:
        assert gate not in chart.notes({}, kubernetes="1.35.0")


def test_the_notes_warn_of_shares_where_the_scheduler_cannot_count_them(chart: Chart) -> None:
    """kube-scheduler 1.34 asks the first card of a slice whether there is room on the others."""
    assert "leave it off" in chart.notes({}, kubernetes="1.34.4")
    assert "leave it off" not in chart.notes({}, kubernetes="1.35.0")
