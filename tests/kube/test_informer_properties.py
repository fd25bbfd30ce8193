import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.kube.rest import Rest
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.watcher import NODES, Reader, node, running, until

NAMES = st.sampled_from("abcd")
STEP = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("spoil"), NAMES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(
        st.sampled_from(
            ["drop", "compact", "bookmark", "garbage", "other", "yield", "settle", "relist"]
        ),
        st.just(""),
    ),
)


def act(server: ApiServer, step: str, name: str) -> None:
    """One thing that happens to the cluster or to the connection."""
    match step:
        case "put":
            server.put(NODES, node(name, unschedulable=server.objects.version % 2 == 0))
        case "spoil":
            server.put(NODES, node(name, taints=server.objects.version))
        case "remove":
            if any(key.name == name for key in server.objects.objects):
                server.remove(NODES, name)
        case "drop":
            server.drop_watches()
        case "compact":
            server.objects.compact()
        case "bookmark":
            server.bookmark()
        case "garbage":
            server.send_raw(b"{")
        case "other":
            server.objects.advance()


async def play(steps: list[tuple[str, str]], *, streams_lists: bool, gone_as_event: bool) -> None:
    """Run the steps against an informer, then compare what it knows with what is."""
    reader = Reader()
    async with ApiServer() as server, server.session() as session:
        server.streams_lists = streams_lists
        server.gone_as_event = gone_as_event
        async with running(Rest(session), reader, clock=FakeClock()) as informer:
            relists = []
            for step, name in steps:
                act(server, step, name)
                if step == "yield":
                    await asyncio.sleep(0)
                elif step == "settle":
                    await asyncio.sleep(0.002)
                elif step == "relist":
                    relists.append(asyncio.create_task(informer.relist()))
            await asyncio.gather(*relists, informer.synced())
            server.put(NODES, node("last"))
            await until(lambda: informer.seen == server.objects.version)
            assert dict(informer.objects) == reader.nodes
            compare(reader, server)


def compare(reader: Reader, server: ApiServer) -> None:
    """What can be read is known as it is; of the rest it is known that it cannot be read."""
    there = {key.name: item for key, item in server.objects.objects.items()}
    spoiled = {name for name, item in there.items() if "taints" in item["spec"]}
    known = {key.name: node.metadata.resource_version for key, node in reader.nodes.items()}
    assert {key.name for key in reader.unreadable} == spoiled
    assert known.keys() <= there.keys()
    for name in there.keys() - spoiled:
        assert known[name] == there[name]["metadata"]["resourceVersion"]


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEP, max_size=25), streams_lists=st.booleans(), gone_as_event=st.booleans())
def test_the_reader_knows_what_the_server_has(
    *, steps: list[tuple[str, str]], streams_lists: bool, gone_as_event: bool
) -> None:
    """Writes, disconnections, compactions and garbage in any order end in the server's state.

    The reader itself checks that versions of an object rise and that old states fit.
    """
    asyncio.run(play(steps, streams_lists=streams_lists, gone_as_event=gone_as_event))
