import asyncio

import pytest

from driver.kube.informer import HandlerError, Informer, Pace
from driver.kube.rest import Rest
from driver.kube.store import Delete, Event, Synced, Unreadable
from driver.kube.watch import Watch, WatchEvent
from driver.model.core import Node
from driver.model.ids import ObjectKey
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Refusal
from tests.kube.watcher import NODES, PACE, Reader, node, running, until


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_first_the_list_then_the_changes(
    server: ApiServer, rest: Rest, *, streams_lists: bool
) -> None:
    """Streaming or paged, a reader sees the list, Synced, then every change in order."""
    server.streams_lists = streams_lists
    server.put(NODES, node("a"))
    server.put(NODES, node("b"))
    reader = Reader()
    async with running(rest, reader) as informer:
        assert not informer.has_synced
        await informer.synced()
        assert reader.words == ["+a", "+b", "="]
        await until(lambda: server.watching == 1)
        server.put(NODES, node("b", unschedulable=True))
        server.remove(NODES, "a")
        server.put(NODES, node("c"))
        await until(lambda: informer.seen == server.objects.version)
    assert reader.words == ["+a", "+b", "=", "+b", "-a", "+c"]
    assert reader.nodes[ObjectKey("", "b")].spec.unschedulable
    assert dict(informer.objects) == reader.nodes


async def test_a_list_is_streamed_with_the_right_words(server: ApiServer, rest: Rest) -> None:
    """The server is asked for a consistent list: no resourceVersion, not older than now."""
    async with running(rest, Reader(), label_selector="app=x") as informer:
        await informer.synced()
    asked = "watch=1&allowWatchBookmarks=true&timeoutSeconds=600"
    consistently = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    assert server.requests == [f"GET {NODES}?labelSelector=app%3Dx&{asked}&{consistently}"]


async def test_a_deletion_has_the_version_of_the_deletion(server: ApiServer, rest: Rest) -> None:
    """Not that of the state that was deleted."""
    server.put(NODES, node("a"))
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
        server.remove(NODES, "a")
        await until(lambda: len(reader.events) == 3)
    last = reader.events[-1]
    assert isinstance(last, Delete)
    assert (last.resource_version, last.listed) == (server.objects.version, False)


async def test_a_broken_connection_is_resumed_where_it_broke(server: ApiServer, rest: Rest) -> None:
    """What happened in between is neither lost nor told twice, and nothing is listed again."""
    reader = Reader()
    server.put(NODES, node("a"))
    async with running(rest, reader) as informer:
        await informer.synced()
        server.drop_watches()
        server.put(NODES, node("b"))
        await until(lambda: informer.seen == server.objects.version)
        assert informer.restarts.total() == 1
    assert reader.words == ["+a", "=", "+b"]
    assert "sendInitialEvents" not in server.requests[-1]


async def test_bookmarks_move_the_place_to_resume_from(server: ApiServer, rest: Rest) -> None:
    """Quiet objects do not fall behind a compaction."""
    async with running(rest, Reader()) as informer:
        await informer.synced()
        server.objects.advance(50)
        server.bookmark()
        await until(lambda: informer.seen == server.objects.version)
        server.objects.compact()
        server.drop_watches()
        await until(lambda: len(server.requests) == 2)
    assert f"resourceVersion={server.objects.version}" in server.requests[-1]


@pytest.mark.parametrize("as_event", [True, False])
@pytest.mark.parametrize("streams_lists", [True, False])
async def test_after_410_only_the_differences_are_told(
    server: ApiServer, rest: Rest, *, as_event: bool, streams_lists: bool
) -> None:
    """A relist reports what ended, what is new, what changed and what was replaced; no more."""
    server.gone_as_event = as_event
    server.streams_lists = streams_lists
    for name in "abcd":
        server.put(NODES, node(name))
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
        await until(lambda: server.watching == 1)
        reader.events.clear()
        server.drop_watches()
        server.remove(NODES, "a")
        server.put(NODES, node("b", unschedulable=True))
        server.remove(NODES, "d")
        server.put(NODES, node("d"))
        server.put(NODES, node("e"))
        server.objects.compact()
        await until(lambda: informer.restarts["Gone"] == 1 and informer.has_synced)
        await until(lambda: informer.seen == server.objects.version)
    assert reader.words == ["-a", "+b", "-d", "+d", "+e", "="]
    ended = [event for event in reader.events if isinstance(event, Delete)]
    assert all(event.listed for event in ended)


async def test_a_dead_connection_is_noticed(server: ApiServer, rest: Rest) -> None:
    """A server that keeps the connection but says nothing is left for a new connection."""
    reader = Reader()
    async with running(rest, reader, pace=Pace(idle=0.05)) as informer:
        await informer.synced()
        server.silent = True
        server.put(NODES, node("a"))
        await until(lambda: informer.restarts["Silence"] > 0)
        server.silent = False
        await until(lambda: "+a" in reader.words)
    assert reader.words == ["=", "+a", "="]


async def test_a_word_now_and_then_keeps_a_connection(server: ApiServer, rest: Rest) -> None:
    """Silence is measured since the last word, not since the beginning."""
    async with running(rest, Reader(), pace=Pace(idle=0.8)) as informer:
        await informer.synced()
        for _ in range(20):
            await asyncio.sleep(0.05)
            server.bookmark()
        assert informer.restarts.total() == 0


async def test_a_line_that_is_no_event_costs_the_connection_only(
    server: ApiServer, rest: Rest
) -> None:
    """Behind garbage there may be a lost event, so the watch is resumed before it."""
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
        server.send_raw(b'{"type":"MODI')
        server.put(NODES, node("a"))
        await until(lambda: informer.seen == server.objects.version)
        assert informer.restarts == {"Unreachable": 1}
    assert reader.words == ["=", "+a"]


async def test_an_object_that_cannot_be_read_is_named_and_skipped(
    server: ApiServer, rest: Rest
) -> None:
    """It keeps its last readable state, does not stop the watch, and is told once."""
    reader = Reader()
    server.put(NODES, node("a"))
    server.put(NODES, node("z", taints="broken"))
    async with running(rest, reader) as informer:
        await informer.synced()
        server.put(NODES, node("a", unschedulable="broken"))
        server.put(NODES, node("b"))
        await until(lambda: informer.seen == server.objects.version)
        await informer.relist()
        assert reader.words == ["+a", "?z", "=", "?a", "+b", "="]
        broken = reader.events[3]
        assert isinstance(broken, Unreadable)
        assert "unschedulable" in broken.reason
        assert ObjectKey("", "a") in informer.objects
        server.put(NODES, node("a"))
        server.remove(NODES, "z")
        await until(lambda: informer.seen == server.objects.version)
    assert reader.words[6:] == ["+a", "-z"]


async def test_a_relist_on_demand_is_begun_after_the_call(server: ApiServer, rest: Rest) -> None:
    """Its Synced event vouches for everything committed before the call; two calls share one."""
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
        server.silent = True
        server.put(NODES, node("a"))
        version = server.objects.version
        server.silent = False
        first, second = await asyncio.gather(informer.relist(), informer.relist())
        assert first == second >= version
        assert ObjectKey("", "a") in informer.objects
    assert reader.events[-1] == Synced(resource_version=first)


async def test_a_watch_that_is_stopped_takes_no_more_lines(server: ApiServer) -> None:
    """Those that are here already must not make it forget, or a relist would wait for ever."""
    server.put(NODES, node("a"))
    server.put(NODES, node("b"))
    received: list[WatchEvent] = []

    def receive(event: WatchEvent) -> None:
        received.append(event)
        if len(received) == 1:
            watch.stop()

    words = {"watch": "1", "allowWatchBookmarks": "true", "sendInitialEvents": "true"}
    async with server.session() as session, asyncio.timeout(10):
        watch = Watch(session, NODES, words | {"resourceVersionMatch": "NotOlderThan"})
        await watch.run(receive, idle=60)
    assert len(received) == 1


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_a_list_under_way_does_not_answer_a_later_wish(
    server: ApiServer, rest: Rest, *, streams_lists: bool
) -> None:
    """It may have been read before what the caller wants to see."""
    server.streams_lists = streams_lists
    async with running(rest, Reader()) as informer:
        await until(lambda: server.watching == 1 and informer.has_synced)
        server.answering.clear()
        before = len(server.requests)
        word = "sendInitialEvents" if streams_lists else "limit=500"
        first = asyncio.create_task(informer.relist())
        await until(lambda: any(word in line for line in server.requests[before:]))
        second = asyncio.create_task(informer.relist())
        await asyncio.sleep(0)
        server.answering.set()
        await asyncio.gather(first, second)
        assert sum(word in line for line in server.requests[before:]) == 2


async def test_waits_grow_while_nothing_works_and_shrink_after(
    server: ApiServer, rest: Rest, clock: FakeClock
) -> None:
    """Doubling delays up to the longest; a word from the server starts over."""
    server.refuse(Refusal(503, "Down"), times=12)
    async with running(rest, Reader(), clock=clock) as informer:
        await informer.synced()
        waits = list(clock.slept)
        assert waits[:4] == pytest.approx([0.05, 0.1, 0.2, 0.4])
        assert max(waits) == 15.0
        server.put(NODES, node("a"))
        await until(lambda: informer.seen == server.objects.version)
        server.drop_watches()
        await until(lambda: len(clock.slept) == len(waits) + 1)
        assert clock.slept[-1] == pytest.approx(0.05)


async def test_a_server_that_asks_for_patience_gets_it(
    server: ApiServer, rest: Rest, clock: FakeClock
) -> None:
    """Retry-After holds for watches too."""
    server.refuse(Refusal(429, "Later"), retry_after=9)
    async with running(rest, Reader(), clock=clock) as informer:
        await informer.synced()
    assert clock.slept == [9.0]


async def test_a_version_from_a_lost_future_leads_to_a_new_list(
    server: ApiServer, rest: Rest
) -> None:
    """After etcd is restored from a backup a watch is silent; then the list rules."""
    reader = Reader()
    server.objects.advance(1000)
    async with running(rest, reader, pace=Pace(idle=0.1)) as informer:
        await informer.synced()
        server.objects.version = 500
        server.drop_watches()
        await until(lambda: len(server.requests) == 2)
        server.put(NODES, node("a"))
        await until(lambda: reader.words == ["=", "+a", "="])
        assert informer.restarts["Silence"] == 1


async def test_an_object_that_nests_too_deep_is_told_like_any_other(
    server: ApiServer, rest: Rest
) -> None:
    """It ends neither the watch nor the process; anybody may make one."""
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
        deep = b"[" * 5000 + b"]" * 5000
        seen = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"999"},"x":%b}' % deep
        server.send_raw(b'{"type":"ADDED","object":%b}' % seen)
        await until(lambda: informer.seen == 999)
        server.send_raw(b'{"type":"DELETED","object":%b}' % seen.replace(b"999", b"1000"))
        await until(lambda: informer.seen == 1000)
    assert reader.words == ["=", "+a", "-a"]


async def test_only_selected_objects_are_told(server: ApiServer, rest: Rest) -> None:
    """An object that leaves the selection has ended for this reader."""
    server.put(NODES, node("a"))
    server.put(NODES, node("b"))
    reader = Reader()
    async with running(rest, reader, label_selector="app=a") as informer:
        await informer.synced()
        server.put(NODES, {"metadata": {"name": "a", "labels": {"app": "b"}}})
        await until(lambda: len(reader.events) == 3)
    assert reader.words == ["+a", "=", "-a"]


async def test_a_reader_that_fails_ends_the_informer(server: ApiServer, rest: Rest) -> None:
    """A missed event must not be passed over in silence."""

    def broken(event: Event[Node]) -> None:
        if event.resource_version == server.objects.version:
            raise RuntimeError("cannot count to three")

    server.put(NODES, node("a"))
    informer = Informer(rest, NODES, Node, on_event=broken, pace=PACE)
    with pytest.raises(HandlerError, match="Upsert at version 101: cannot count to three"):
        await informer.run()


async def test_many_pages_are_one_list(server: ApiServer, rest: Rest) -> None:
    """Without streaming lists, pages are put together before anything is told."""
    server.streams_lists = False
    for number in range(1203):
        server.put(NODES, node(f"n{number}"))
    reader = Reader()
    async with running(rest, reader) as informer:
        await informer.synced()
    assert len(reader.nodes) == 1203
    assert sum("limit=500" in line for line in server.requests) == 3
