"""MetadataService's methods on links: what is in a context, its children, and the events of executions."""

from collections.abc import Mapping

from trainstack.vertex.resources.handlers import Handler, touched
from trainstack.vertex.resources.methods import message_of
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

_CONTEXT, _EXECUTION, _ARTIFACT = map(message_of, ("Context", "Execution", "Artifact"))
_EVENT, _SUBGRAPH = map(message_of, ("Event", "LineageSubgraph"))


class Metadata:
    """Links of one store. Deleting a resource deletes its links."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "AddContextArtifactsAndExecutions": self.add_members,
            "AddContextChildren": self.add_children,
            "QueryContextLineageSubgraph": self.query_context,
            "AddExecutionEvents": self.add_events,
            "QueryExecutionInputsAndOutputs": self.query_execution,
        }

    def add_members(self, request: Message) -> Message:
        context = self._store.get(_CONTEXT, by_number(request.context)).name
        for kind, names in ((_ARTIFACT, request.artifacts), (_EXECUTION, request.executions)):
            for name in names:
                self._store.link(context, self._store.get(kind, by_number(name)).name)
        return message_of("AddContextArtifactsAndExecutionsResponse")()

    def add_children(self, request: Message) -> Message:
        parent = self._store.get(_CONTEXT, by_number(request.context)).name
        for name in request.child_contexts:
            child = self._store.get(_CONTEXT, by_number(name))
            if parent not in child.parent_contexts:
                child.parent_contexts.append(parent)
                self._store.put(touched(child))
        return message_of("AddContextChildrenResponse")()

    def add_events(self, request: Message) -> Message:
        execution = self._store.get(_EXECUTION, by_number(request.execution)).name
        for event in request.events:
            artifact = self._store.get(_ARTIFACT, by_number(event.artifact)).name
            event.artifact, event.execution = artifact, execution
            event.event_time.GetCurrentTime()
            self._store.link(execution, artifact, event.SerializeToString())
        return message_of("AddExecutionEventsResponse")()

    def query_context(self, request: Message) -> Message:
        """The executions and artifacts in the context, and the events between them."""
        found = _SUBGRAPH()
        names = self._store.links_of(self._store.get(_CONTEXT, by_number(request.context)).name)
        for name in names:
            if "/executions/" in name:
                found.executions.append(self._store.get(_EXECUTION, name))
                events = self._store.links_of(name)
                found.events.extend(_EVENT.FromString(events[other]) for other in events if other in names)
            else:
                found.artifacts.append(self._store.get(_ARTIFACT, name))
        return found

    def query_execution(self, request: Message) -> Message:
        """The execution, its artifacts and its events."""
        execution = self._store.get(_EXECUTION, by_number(request.execution))
        events = self._store.links_of(execution.name)
        return _SUBGRAPH(
            executions=[execution],
            artifacts=[self._store.get(_ARTIFACT, name) for name in events],
            events=[_EVENT.FromString(event) for event in events.values()],
        )
