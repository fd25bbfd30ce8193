import pytest

from driver.kube.errors import KubeError
from driver.kube.store import Delete, Event, Store, Unreadable, Upsert, version_of
from driver.model.api import ObjectMeta
from driver.model.core import Node
from driver.model.ids import ObjectKey


def node(name: str, version: int, uid: str = "") -> Node:
    """A node in some state."""
    metadata = ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=str(version))
    return Node(metadata=metadata)


def broken(name: str, version: int) -> Unreadable:
    """The news of a node that cannot be decoded."""
    return Unreadable(
        key=key(name), uid=f"uid-{name}", reason="no number", resource_version=version
    )


def key(name: str) -> ObjectKey:
    """Where a node is."""
    return ObjectKey("", name)


def listed(store: Store[Node], *nodes: Node, bad: tuple[Unreadable, ...] = ()) -> list[Event[Node]]:
    """The events of a list of version 100."""
    items = {key(item.metadata.name): item for item in nodes}
    return store.replace(items, {news.key: news for news in bad}, 100)


def test_an_old_state_changes_nothing() -> None:
    """A watch may repeat what is known, and must not go back."""
    store: Store[Node] = Store()
    store.put(node("a", 5))
    assert store.put(node("a", 5)) == []
    assert store.put(node("a", 4)) == []
    assert [type(event) for event in store.put(node("a", 6))] == [Upsert]


def test_a_list_goes_back_where_the_cluster_did() -> None:
    """After etcd was restored from a backup, older is true."""
    store: Store[Node] = Store()
    store.put(node("a", 500))
    (event,) = listed(store, node("a", 5))
    assert isinstance(event, Upsert)
    assert event.old == node("a", 500)


def test_a_list_tells_ends_first_then_states_by_version() -> None:
    """What ended may hold what is used next."""
    store: Store[Node] = Store()
    for name in ("a", "b", "same"):
        store.put(node(name, 1))
    events = listed(store, node("same", 1), node("z", 7), node("y", 9), node("x", 8))
    ended, states = events[:2], events[2:]
    assert [event.key.name for event in ended if isinstance(event, Delete)] == ["a", "b"]
    assert [event.resource_version for event in ended] == [100, 100]
    assert [event.resource_version for event in states] == [7, 8, 9]


def test_another_object_of_the_same_name_is_another_object() -> None:
    """The end of the old one is told before the new one."""
    store: Store[Node] = Store()
    store.put(node("a", 1, "old"))
    ended, began = listed(store, node("a", 9, "new"))
    assert isinstance(ended, Delete)
    assert (ended.uid, ended.listed) == ("old", True)
    assert isinstance(began, Upsert)
    assert began.old is None


def test_an_unreadable_object_that_a_list_no_longer_has_ended() -> None:
    """Even if it never could be read."""
    store: Store[Node] = Store()
    assert store.put_unreadable(broken("a", 3)) == [broken("a", 3)]
    assert listed(store, bad=(broken("a", 3),)) == []
    (ended,) = listed(store)
    assert ended == Delete(key=key("a"), uid="uid-a", old=None, resource_version=100, listed=True)
    assert listed(store) == []


def test_an_object_that_became_unreadable_keeps_its_last_state() -> None:
    """A list that has it unreadable does not end it."""
    store: Store[Node] = Store()
    store.put(node("a", 1))
    assert listed(store, bad=(broken("a", 3),)) == [broken("a", 3)]
    assert store.objects == {key("a"): node("a", 1)}
    (event,) = store.put(node("a", 4))
    assert isinstance(event, Upsert)
    assert event.old == node("a", 1)


def test_the_end_of_what_was_never_told_is_not_told() -> None:
    """A watch may begin with it."""
    store: Store[Node] = Store()
    assert store.remove(node("a", 3).metadata) == []


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.5", "٣"])
def test_a_version_is_a_number(text: str) -> None:
    """Anything else cannot be compared and is an error that names the object."""
    with pytest.raises(KubeError, match="/a has the resourceVersion"):
        version_of(ObjectMeta(name="a", resource_version=text))
