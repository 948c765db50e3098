"""The refusal of every gRPC method that a server does not have."""

from typing import Any

import grpc

from trainstack.json_bodies import not_served


class NotServed(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Answers UNIMPLEMENTED with a sentence, before it reads a request; gRPC itself would only say `Method not found!`.

    Add it after the handlers of the methods that are served.
    """

    def service(self, call: Any) -> Any:
        async def refuse(_requests: object, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, not_served(call.method.lstrip("/")))

        return grpc.stream_stream_rpc_method_handler(refuse)
