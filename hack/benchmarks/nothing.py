"""A DRA plugin that says yes to everything and does nothing: what gRPC alone takes.

python -m hack.benchmarks.nothing SOCKET
"""

import asyncio
import sys

import grpc.aio

from driver._proto import dra_v1_pb2, dra_v1_pb2_grpc


class Nothing:
    """Answers for every claim that it is asked for."""

    async def NodePrepareResources(  # noqa: N802 # gRPC's name
        self, request: dra_v1_pb2.NodePrepareResourcesRequest, _: object
    ) -> dra_v1_pb2.NodePrepareResourcesResponse:
        """No device is prepared."""
        answer = dra_v1_pb2.NodePrepareResourceResponse()
        return dra_v1_pb2.NodePrepareResourcesResponse(
            claims={claim.uid: answer for claim in request.claims}
        )

    async def NodeUnprepareResources(  # noqa: N802 # gRPC's name
        self, request: dra_v1_pb2.NodeUnprepareResourcesRequest, _: object
    ) -> dra_v1_pb2.NodeUnprepareResourcesResponse:
        """No device is given back."""
        answer = dra_v1_pb2.NodeUnprepareResourceResponse()
        return dra_v1_pb2.NodeUnprepareResourcesResponse(
            claims={claim.uid: answer for claim in request.claims}
        )


async def serve(socket: str) -> None:
    """Serve until the process is ended."""
    server = grpc.aio.server()
    dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(Nothing(), server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
