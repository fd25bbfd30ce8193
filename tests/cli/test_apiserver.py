"""The simulated API server keeps what a real one promises."""

from typing import Any

import pytest

from driver.cli.simulation.apiserver import ApiServer, ConflictError


@pytest.fixture
def seen() -> list[dict[str, Any]]:
    """Every version that the watch was told of."""
    return []


@pytest.fixture
def api(seen: list[dict[str, Any]]) -> ApiServer:
    """An empty API server."""
    return ApiServer(seen.append)


def _pod(**metadata: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"namespace": "n", **metadata}}


def test_every_version_is_new_and_watched(api: ApiServer, seen: list[dict[str, Any]]) -> None:
    """Versions rise over all objects; the watch sees each in order."""
    first = api.create(_pod(name="a"))
    api.create(_pod(name="b"))
    api.update({**first, "spec": {"x": 1}})
    assert [raw["metadata"]["resourceVersion"] for raw in seen] == ["1", "2", "3"]


def test_a_write_on_an_old_version_is_refused(api: ApiServer) -> None:
    """What was read before another write cannot overwrite it."""
    first = api.create(_pod(name="a"))
    api.update({**first, "spec": {"x": 1}})
    with pytest.raises(ConflictError, match=r"Pod n/a is at version 2, the write rests on 1"):
        api.update({**first, "spec": {"x": 2}})
    stored = api.get("Pod", "n", "a")
    assert stored is not None
    assert stored["spec"] == {"x": 1}


def test_generated_names_and_uids_differ(api: ApiServer) -> None:
    """Objects made from one `generateName` get names of their own."""
    made = [api.create(_pod(generateName="web-"))["metadata"] for _ in range(50)]
    assert len({metadata["name"] for metadata in made}) == 50
    assert len({metadata["uid"] for metadata in made}) == 50


def test_a_new_object_has_no_status(api: ApiServer) -> None:
    """What `kubectl get` printed can be created again, without what became of it."""
    assert "status" not in api.create({**_pod(name="a"), "status": {"phase": "Running"}})


def test_what_is_handed_out_is_a_copy(api: ApiServer) -> None:
    """Nobody changes a stored object without a write."""
    api.create(_pod(name="a"))["metadata"]["name"] = "changed"
    stored = api.get("Pod", "n", "a")
    assert stored is not None
    assert stored["metadata"]["name"] == "a"
    assert api.get("Pod", "n", "changed") is None
