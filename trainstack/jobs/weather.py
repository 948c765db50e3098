"""Weather: a schedule of injections into jobs over days, in scaled time, that a stack plays until it ends.

scale: 1 min = 6 h
weather:
- {from: 0 h, to: 2 d, region: us-central1, resource: NVIDIA_L4, kind: hold_queued}
- {from: 1 d, to: 30 h, region: europe-*, kind: over_quota}

`from` and `to` are times since the beginning. An entry is an injection, `weather-0` and on, while its time lasts.
"""

import asyncio
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from google.cloud.aiplatform_v1.types.accelerator_type import AcceleratorType

from trainstack.errors import InvalidArgumentError
from trainstack.injections.active import JOBS, Injection, Injections
from trainstack.injections.plan import injection_from
from trainstack.jobs.capacity import NAME_MAX_CHARS, REPLICAS, SPOT, STANDARD, no_accelerator
from trainstack.jobs.resource.machines import REGIONS
from trainstack.reading import Reading

MAX_ENTRIES = 1000
MAX_DAYS, MAX_HOURS = 366, 24
"""How long a schedule may last, in its own time and in the stack's."""
_NAME = "weather-"
_UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_TIME_MAX_CHARS = 100
_TIME = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*(s|min|h|d)\s*")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An injection that is active from `from_s` to `to_s`, in seconds of the schedule."""

    from_s: float
    to_s: float
    injection: Injection


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`speed` is how many seconds of the schedule pass in one of the stack's; `length_s` is in the schedule's."""

    speed: float
    length_s: float
    entries: tuple[Entry, ...]


def schedule_from(document: object) -> Schedule:
    """Parse a document, as the schema weather.v1 describes it.

    Raises:
        InvalidArgumentError: with every fault, each with its path.
    """
    reading = Reading()
    whole = reading.mapping(document, "$", known=("scale", "weather"))
    sides = str(whole.get("scale", "1 s = 1 s")).partition("=")
    real, simulated = _seconds(sides[0]), _seconds(sides[2])
    good = bool(real and simulated)
    reading.expect(good, "$.scale", "two times like '1 min = 6 h'", whole.get("scale"))
    listed = whole.get("weather")
    is_list = isinstance(listed, list) and 0 < len(listed) <= MAX_ENTRIES
    reading.expect(is_list, "$.weather", f"a list of 1 to {MAX_ENTRIES} entries", listed)
    rows = enumerate(listed) if is_list and isinstance(listed, list) else ()
    entries = [entry for index, row in rows if (entry := _entry(reading, row, f"$.weather[{index}]"))]
    speed, length_s = (simulated or 1) / (real or 1), max((entry.to_s for entry in entries), default=0.0)
    if length_s > MAX_DAYS * _UNITS_S["d"]:
        reading.wrong.append(f"$.weather: ends after more than {MAX_DAYS} d.")
    elif good and length_s / speed > MAX_HOURS * _UNITS_S["h"]:
        reading.wrong.append(f"$.scale: at this scale the weather plays longer than {MAX_HOURS} h.")
    if reading.wrong:
        raise InvalidArgumentError(*reading.wrong)
    return Schedule(speed=speed, length_s=length_s, entries=tuple(entries))


def _entry(reading: Reading, value: object, path: str) -> Entry | None:
    settings = ("kind", "times", "probability", "seconds")
    row: Mapping[str, Any] = reading.mapping(
        value, path, known=("from", "to", "region", "resource", "spot", *settings)
    )
    if not isinstance(value, dict):
        return None
    from_s, to_s = _seconds(row.get("from", "0 s")), _seconds(row.get("to"))
    for name, seconds in (("from", from_s), ("to", to_s)):
        expected = "a time like '1 d 12 h', of s, min, h and d"
        reading.expect(seconds is not None, f"{path}.{name}", expected, row.get(name))
    if from_s is None or to_s is None or to_s <= from_s:
        reading.expect(None in (from_s, to_s), f"{path}.to", "a time after `from`", row.get("to"))
    fields = {name: row[name] for name in settings if name in row}
    name = _NAME + path.removeprefix("$.weather[").removesuffix("]")
    match = _match_of_place(reading, row, path)
    injection = injection_from(reading, {"name": name, "at": JOBS, "match": match, **fields}, path)
    return Entry(from_s=from_s or 0.0, to_s=to_s or 0.0, injection=injection) if injection else None


def _match_of_place(reading: Reading, row: Mapping[str, Any], path: str) -> str:
    """The `match` of an injection into the jobs of a region and resource, both globs, and of spot or standard machines."""
    for name in ("region", "resource"):
        given = row.get(name, "*")
        fits = isinstance(given, str) and len(given) <= NAME_MAX_CHARS
        reading.expect(fits, f"{path}.{name}", f"a glob of at most {NAME_MAX_CHARS} characters", given)
    region = str(row.get("region", "*"))[:NAME_MAX_CHARS]
    if isinstance(row.get("region"), str) and not any(fnmatchcase(name, region) for name in REGIONS):
        near = difflib.get_close_matches(region, sorted(REGIONS), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ", for example us-central1 or europe-*."
        reading.wrong.append(f"{path}.region: Vertex AI has no region {region!r}{hint}")
    spot, resource = row.get("spot"), str(row.get("resource", "*"))[:NAME_MAX_CHARS]
    reading.expect(spot is None or isinstance(spot, bool), f"{path}.spot", "true or false", spot)
    # An injection into the jobs of what no job can request would never strike.
    if resource == REPLICAS:
        reading.wrong.append(
            f"{path}.resource: expected an accelerator or a machine type, found {resource!r}; "
            "leave it out to match every job."
        )
    if resource.isupper() and not any(fnmatchcase(name, resource) for name in AcceleratorType.__members__):
        reading.wrong.append(no_accelerator(resource, f"{path}.resource", "NVIDIA_* or n1-*"))
    kind = "*" if spot is None else SPOT if spot else STANDARD
    return f"{region}/{resource}/{kind}"


def _seconds(text: object) -> float | None:
    """The seconds of `1 d 12 h`; None for anything else."""
    if not isinstance(text, str) or not 0 < len(text) <= _TIME_MAX_CHARS or _TIME.sub("", text):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _TIME.findall(text))


class Weather:
    """Plays one schedule at a time on injections, in the running event loop."""

    def __init__(self, injections: Injections) -> None:
        self._injections = injections
        self._schedule: Schedule | None = None
        self._began = 0.0
        self._task: asyncio.Task[None] | None = None

    def play(self, schedule: Schedule) -> None:
        """Play from the beginning, in place of what plays now."""
        self.stop()
        self._schedule, self._began = schedule, asyncio.get_running_loop().time()
        self._activate(schedule.entries, at_s=0.0)
        self._task = asyncio.create_task(self._play(schedule), name="weather")

    def stop(self) -> None:
        """End what plays, and remove its injections. Safe to call twice."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._schedule = None
        self._activate(())

    def to_json(self) -> dict[str, object]:
        """What plays, and how far it is, in seconds of the schedule; `{}` if nothing plays."""
        if (schedule := self._schedule) is None:
            return {}
        return {
            "now_s": round(self._now_s(schedule)),
            "length_s": round(schedule.length_s),
            "entries": len(schedule.entries),
            "active": self._active(),
        }

    async def _play(self, schedule: Schedule) -> None:
        for moment in sorted({time for entry in schedule.entries for time in (entry.from_s, entry.to_s)}):
            await asyncio.sleep((moment - self._now_s(schedule)) / schedule.speed)
            self._activate(schedule.entries, at_s=moment)
        self._task = self._schedule = None

    def _activate(self, entries: Sequence[Entry], *, at_s: float = 0.0) -> None:
        """Make exactly the entries of that moment active; those that stay so keep their counts."""
        now = [entry.injection for entry in entries if entry.from_s <= at_s < entry.to_s]
        former = set(self._active()) - {injection.name for injection in now}
        self._injections.change([one for one in now if not self._injections.has(one)], former)

    def _active(self) -> list[str]:
        return [name for name in self._injections.names if name.startswith(_NAME)]

    def _now_s(self, schedule: Schedule) -> float:
        return (asyncio.get_running_loop().time() - self._began) * schedule.speed
