"""The resources of a project, from a mapping such as trainmaster/deploy/topology.yaml has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainstack.events.schedule import BadScheduleError, CronSchedule
from trainstack.functions.function import BucketTrigger, DeadLetter, Function, TopicTrigger, Trigger
from trainstack.reading import Reading, is_count
from trainstack.stack.errors import BadTopologyError

MAX_ATTEMPTS = range(5, 101)
"""Allowed delivery attempts before dead-lettering; source: the DeadLetterPolicy reference page."""


@dataclass(frozen=True, kw_only=True)
class TopologySink:
    """A log sink to the topic of this full name; `filter` is the text of the file that the topology names."""

    name: str
    topic_name: str
    filter: str


@dataclass(frozen=True, kw_only=True)
class KeptTopic:
    """A subscription without a function: it keeps the topic's messages for pull clients."""

    subscription_name: str
    topic_name: str
    retention_h: int
    ack_deadline_s: int


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A project's resources. `buckets` and `topics` map the roles used in the file to names and ids.

    `prefix` is what the names of functions and accounts have before their own, so that a project may have several of each.
    """

    project: str
    region: str
    prefix: str
    buckets: Mapping[str, str]
    topics: Mapping[str, str]
    subscriptions: tuple[KeptTopic, ...]
    sinks: tuple[TopologySink, ...]
    functions: tuple[Function, ...]
    environment: Mapping[str, str]
    schedules: tuple[CronSchedule, ...]
    images: Mapping[str, str]

    def topic_name(self, role: str) -> str:
        """The full resource name of a topic."""
        return f"projects/{self.project}/topics/{self.topics[role]}"


@dataclass(frozen=True, kw_only=True)
class EventSource:
    """Where events of a function come from: `trigger` has the settings of `function`, and its own name and topic."""

    trigger: Function
    function: str


def sources_of(topology: Topology, team_topics: Mapping[str, str | None]) -> list[EventSource]:
    """Each function's trigger, and for the function of requests one for each further topic of a team's requests.

    They are named as those that trainmaster/deploy/terraform/plan/main.tf creates.
    """
    sources = [EventSource(trigger=function, function=function.name) for function in topology.functions]
    requests = TopicTrigger(topic=topology.topics.get("requests", ""))
    return sources + [
        EventSource(
            trigger=replace(function, name=f"{function.name}-{team}", trigger=TopicTrigger(topic=topic)),
            function=function.name,
        )
        for function in topology.functions
        if function.trigger == requests
        for team, topic in team_topics.items()
        if topic is not None and topic not in topology.topics.values()
    ]


def topology_from(loaded: Mapping[str, Any], path: Path, *, project: str, region: str) -> Topology:
    """The topology of a project. `loaded` is the content of the file `path`, which the filters of sinks lie beside.

    Raises:
        BadTopologyError: with every fault found.
    """
    reader = _Reader(loaded, project=project, region=region, folder=path.parent)
    topology = reader.topology()
    if reader.faults:
        raise BadTopologyError("\n".join(f"{path}: {fault}" for fault in reader.faults))
    return topology


class _Reader:
    """Reads each part and collects its faults in `faults`."""

    def __init__(self, loaded: object, *, project: str, region: str, folder: Path) -> None:
        self._reading = Reading()
        self.faults = self._reading.wrong
        self._root = self._reading.mapping(loaded, "$")
        self._project, self._region, self._folder = project, region, folder
        self._prefix = str(self._root.get("prefix") or "")
        self._buckets = self._names("buckets")
        self._topics = self._names("topics")

    def topology(self) -> Topology:
        return Topology(
            project=self._project,
            region=self._region,
            prefix=self._prefix,
            buckets=self._buckets,
            topics=self._topics,
            subscriptions=tuple(self._kept_topic(name, row) for name, row in self._section("subscriptions")),
            sinks=tuple(self._sink(name, row) for name, row in self._section("sinks")),
            functions=tuple(self._function(name, row) for name, row in self._section("functions")),
            environment=self._names("environment", may_be_empty=True),
            schedules=tuple(
                schedule
                for name, row in self._section("schedules")
                if (schedule := self._schedule(name, row))
            ),
            images=self._names("images"),
        )

    def _section(self, name: str) -> list[tuple[str, Mapping[str, Any]]]:
        section = self._reading.mapping(self._root.get(name) or {}, f"$.{name}")
        return [(key, self._reading.mapping(value, f"$.{name}.{key}")) for key, value in section.items()]

    def _names(self, name: str, *, may_be_empty: bool = False) -> dict[str, str]:
        """The section's texts, without those that are empty if they may be."""
        section = self._reading.mapping(self._root.get(name) or {}, f"$.{name}")
        return {
            key: self._text(f"$.{name}", section, key) for key in section if section[key] or not may_be_empty
        }

    def _sink(self, name: str, row: Mapping[str, Any]) -> TopologySink:
        path = self._folder / str(row.get("filter_file", ""))
        try:
            text = path.read_text()
        except OSError as error:
            self.faults.append(f"$.sinks.{name}.filter_file: {error}")
            text = ""
        return TopologySink(name=name, topic_name=self._topic_name(f"$.sinks.{name}", row), filter=text)

    def _kept_topic(self, name: str, row: Mapping[str, Any]) -> KeptTopic:
        where = f"$.subscriptions.{name}"
        return KeptTopic(
            subscription_name=f"projects/{self._project}/subscriptions/{name}",
            topic_name=self._topic_name(where, row),
            retention_h=self._count(where, row, "retention_h", 168),
            ack_deadline_s=self._count(where, row, "ack_deadline_s", 10),
        )

    def _function(self, name: str, row: Mapping[str, Any]) -> Function:
        where = f"$.functions.{name}"
        return Function(
            name=f"{self._prefix}{name}",
            entry_point=self._text(where, row, "entry_point"),
            trigger=self._trigger(f"{where}.trigger", row.get("trigger")),
            timeout_s=self._count(where, row, "timeout_s", 60),
            memory_mib=self._count(where, row, "memory_mib", 256),
            concurrency=self._count(where, row, "concurrency", 1),
            retry=self._flag(where, row, "retry"),
            dead_letter=self._dead_letter(where, row),
        )

    def _dead_letter(self, where: str, row: Mapping[str, Any]) -> DeadLetter | None:
        """None if not configured. Without `retry`, a message fails only once, so none could be dead-lettered."""
        match row.get("dead_letter"):
            case None:
                return None
            case {"topic": str(role), "max_attempts": int(attempts), **rest} if (
                role in self._topics and attempts in MAX_ATTEMPTS and not rest and row.get("retry") is True
            ):
                return DeadLetter(topic=self._topics[role], max_attempts=attempts)
            case found:
                self.faults.append(
                    f"{where}.dead_letter: expected {{topic: one of {sorted(self._topics)}, "
                    f"max_attempts: {MAX_ATTEMPTS[0]} to {MAX_ATTEMPTS[-1]}}} with retry: true, found {found!r}"
                )
                return None

    def _trigger(self, where: str, value: object) -> Trigger:
        match value:
            case {"bucket": str(role), **rest} if role in self._buckets and not rest:
                return BucketTrigger(bucket=self._buckets[role])
            case {"topic": str(role), **rest} if role in self._topics and not rest:
                return TopicTrigger(topic=self._topics[role])
            case _:
                self.faults.append(
                    f"{where}: expected {{bucket: one of {sorted(self._buckets)}}} or "
                    f"{{topic: one of {sorted(self._topics)}}}, found {value!r}"
                )
                return TopicTrigger(topic="")

    def _schedule(self, name: str, row: Mapping[str, Any]) -> CronSchedule | None:
        where = f"$.schedules.{name}"
        try:
            return CronSchedule(
                name=name,
                cron=self._text(where, row, "cron"),
                time_zone=self._text(where, row, "time_zone", "Etc/UTC"),
                topic_name=self._topic_name(where, row),
                data=self._text(where, row, "data").encode(),
            )
        except BadScheduleError as error:
            self.faults.append(f"{where}: {error}")
            return None

    def _topic_name(self, where: str, row: Mapping[str, Any]) -> str:
        role = row.get("topic")
        if role not in self._topics:
            self.faults.append(f"{where}.topic: expected one of {sorted(self._topics)}, found {role!r}")
        return f"projects/{self._project}/topics/{self._topics.get(str(role), '')}"

    def _text(self, where: str, row: Mapping[str, Any], key: str, default: str = "") -> str:
        value = row.get(key, default)
        good = isinstance(value, str) and bool(value)
        return value if self._reading.expect(good, f"{where}.{key}", "a text", value) else default

    def _count(self, where: str, row: Mapping[str, Any], key: str, default: int) -> int:
        value = row.get(key, default)
        good = is_count(value) and value > 0
        return (
            value
            if self._reading.expect(good, f"{where}.{key}", "an integer of at least 1", value)
            else default
        )

    def _flag(self, where: str, row: Mapping[str, Any], key: str) -> bool:
        value = row.get(key, False)
        good = isinstance(value, bool)
        return bool(self._reading.expect(good, f"{where}.{key}", "true or false", value) and value)
