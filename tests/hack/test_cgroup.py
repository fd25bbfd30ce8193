"""Which cgroup trees does a machine have?"""

from pathlib import Path

from hack.kubernetes.cgroup import Trees, node_root, parse_mounts

_OLD = "33 32 0:29 / /sys/fs/cgroup/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"
_NEW = "30 23 0:26 / {path} rw,nosuid shared:4 - cgroup2 cgroup2 rw"
_OTHER = "24 1 254:0 / / rw,relatime - ext4 /dev/root rw"


def _tree(name: str) -> Path:
    return Path("/sys/fs/cgroup") / name


def test_version_1_is_tracked_by_the_freezer() -> None:
    """Every container is in every tree; one of them is enough to find processes."""
    trees = parse_mounts("\n".join(_OLD.format(name=n) for n in ("cpu", "freezer", "pids")))
    assert trees.used == (_tree("cpu"), _tree("freezer"), _tree("pids"))
    assert trees.tracker == _tree("freezer")


def test_version_2_has_one_tree() -> None:
    """Groups are made and found in the same place."""
    trees = parse_mounts("\n".join((_OTHER, _NEW.format(path="/sys/fs/cgroup"))))
    assert trees == Trees((), (Path("/sys/fs/cgroup"),))
    assert trees.tracker == Path("/sys/fs/cgroup")


def test_a_hybrid_host_uses_version_1_but_both_are_cleaned() -> None:
    """There runc makes groups in the version 2 tree too."""
    lines = (_OLD.format(name="memory"), _NEW.format(path="/sys/fs/cgroup/unified"))
    trees = parse_mounts("\n".join(lines))
    assert trees.used == (_tree("memory"),)
    assert trees.unified == (_tree("unified"),)


def test_a_machine_without_cgroups_has_no_trees() -> None:
    """Seen in small containers; the caller tells it in a sentence."""
    assert parse_mounts(_OTHER).used == ()


def test_nodes_of_two_clusters_have_different_groups() -> None:
    """The same node name in two clusters must not meet."""
    assert node_root("one", "t4") != node_root("two", "t4")
