"""JobService's methods, the same for custom jobs and tuning jobs."""

from collections.abc import Mapping
from typing import Generic

from google.protobuf import empty_pb2

from trainstack.jobs.collection import Collection
from trainstack.jobs.listing.catalogue import AnyJob
from trainstack.vertex.resources.handlers import Handler, StandardHandlers, message_of
from trainstack.vertex.resources.methods import list_method, snake_case
from trainstack.vertex.resources.store import Message, by_number


class JobHandlers(Generic[AnyJob]):
    """The methods on the jobs of one kind."""

    def __init__(self, jobs: Collection[AnyJob], standard: StandardHandlers) -> None:
        self._jobs, self._standard = jobs, standard
        self._kind = jobs.kind.kind

    def handlers(self) -> Mapping[str, Handler]:
        return {
            f"Create{self._kind}": self.create,
            f"Get{self._kind}": lambda request: self._jobs.get(*_name_parts(request)),
            list_method(self._kind): self.list_page,
            f"Cancel{self._kind}": self.cancel,
            f"Delete{self._kind}": self.delete,
        }

    def create(self, request: Message) -> AnyJob:
        _, project, _, location = by_number(request.parent).split("/")
        return self._jobs.create(project, location, getattr(request, snake_case(self._kind)))

    def list_page(self, request: Message) -> Message:
        """Of tuning jobs, without their trials."""
        parent, size, token = by_number(request.parent), request.page_size, request.page_token
        jobs, next_token = self._jobs.page(parent, filter_=request.filter, size=size, token=token)
        shown = {f"{snake_case(self._kind)}s": [job.message for job in jobs]}
        return message_of(f"{list_method(self._kind)}Response")(**shown, next_page_token=next_token)

    def cancel(self, request: Message) -> Message:
        self._jobs.cancel(*_name_parts(request))
        return empty_pb2.Empty()

    async def delete(self, request: Message) -> Message:
        await self._jobs.delete(*_name_parts(request))
        return self._standard.done("Delete", empty_pb2.Empty(), parent=by_number(request.name))


def _name_parts(request: Message) -> tuple[str, str]:
    """The job's parent and id."""
    parent, _, job_id = by_number(request.name).rsplit("/", 2)
    return parent, job_id
