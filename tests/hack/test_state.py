"""Does the state of a cluster survive being written?"""

from pathlib import Path

from hack.kubernetes import state
from hack.kubernetes.layout import Layout
from hack.kubernetes.process import Identity


def _state(root: Path) -> state.State:
    node = state.Node("t4", "4xT4", "a", "b", "c", "d", "e", "f", "g")
    part = state.Component("kubelet/t4", ("kubelet", "--x"), "log", "group", "")
    return state.State(
        name="dev",
        kubernetes="1.37.2",
        root=str(root),
        kubeconfig="k",
        server="s",
        etcd="e",
        image="i",
        network=7,
        bin={"etcd": "/bin/etcd"},
        nodes=(node,),
        components=(part,),
    )


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Every command after up knows the cluster from this file alone."""
    place = Layout("dev", tmp_path)
    known = _state(tmp_path)
    started = state.Component("etcd", ("etcd",), "log", "", "", Identity("boot", 12, 34))
    state.save(place, known.replace(started))
    assert state.load(place) == known.replace(started)


def test_a_component_replaces_its_namesake(tmp_path: Path) -> None:
    """A restart changes one entry and keeps the order."""
    known = _state(tmp_path)
    again = state.Component("kubelet/t4", ("kubelet",), "log", "", "", Identity("boot", 1, 2))
    assert known.replace(again).components == (again,)


def test_a_broken_or_absent_file_is_no_cluster(tmp_path: Path) -> None:
    """Clean-up must work from any remains."""
    place = Layout("dev", tmp_path)
    assert state.load(place) is None
    for text in ("", "{", "[]", '{"name": "dev"}', "null"):
        place.state.write_text(text)
        assert state.load(place) is None


def test_logs_of_nodes_have_flat_names(tmp_path: Path) -> None:
    """kubelet/t4 is a component, not a folder."""
    assert state.log_of(Layout("dev", tmp_path), "kubelet/t4") == tmp_path / "logs/kubelet-t4.log"
