"""The budget of a session: what its runs have cost, and what those that have not ended may still cost."""

import threading
from collections.abc import Callable, Mapping
from decimal import Decimal

from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import read_run
from trainmaster.client.runs.listing import Filters, KeptIndex
from trainmaster.client.submission.send import Sent
from trainmaster.orchestrator.core.completion.steps import REGISTRY, is_over
from trainmaster.orchestrator.core.runs.end import EVALUATION
from trainmaster.orchestrator.core.runs.record import Estimate
from trainmaster.orchestrator.core.runs.states import ENDS
from trainmaster.web.source import INDEX, AnswerAge, ConsoleSource


class Budget:
    """The most that the runs with the session's label may cost, in US dollars; None: no limit. Safe for threads.

    The index of runs says what they cost, so a server that was killed forgets only runs that are not recorded yet, and
    the jobs that follow a run until they have ended.
    `runs` are those of the requests that are known to be sent, by their keys.
    """

    def __init__(self, limit: Decimal | None, label: Mapping[str, str]) -> None:
        self.limit, self._session = limit, Filters(labels=label)
        self.runs: dict[str, tuple[str, ...]] = {}
        self._reserved: dict[str, Decimal] = {}
        self._settled: set[str] = set()
        self._lock = threading.Lock()

    def spend(self, source: ConsoleSource, key: str, cost: Estimate | None, send: Callable[[], Sent]) -> Sent:
        """Send the request with this key, which may cost this much. One at a time, so that together they stay within the limit.

        It is reserved before: if `send` fails, the request may be sent all the same. To send it again reserves no more.

        Raises:
            ClientRefused: it may exceed the budget, or its cost is not known in US dollars. Nothing was sent.
        """
        with self._lock:
            is_again = key in self._reserved
            if refusal := self.refusal(source, key, cost):
                raise ClientRefused(f"{refusal} Nothing was sent.")
            if cost is not None and cost.at_most is not None:
                self._reserved[key] = cost.at_most
            try:
                return send()
            except ClientRefused:
                if not is_again:
                    self._reserved.pop(key, None)
                raise

    def refusal(self, source: ConsoleSource, key: str, cost: Estimate | None) -> str:
        """Why the request with this key may not be sent; empty if it may."""
        if self.limit is None or key in self._reserved:
            return ""
        if cost is None or cost.at_most is None or cost.unknown or cost.currency != "USD":
            return "A session with a budget needs a known cost in US dollars."
        if (spent := self.spent(source)) + cost.at_most <= self.limit:
            return ""
        return (
            f"Over the budget: this may cost up to {cost.at_most:.2f} USD, and of {self.limit:f} USD {spent:.2f} are spent, "
            "or reserved for runs that have not ended."
        )

    def spent(self, source: ConsoleSource) -> Decimal:
        """What counts towards the limit now."""
        rows = source.follow(INDEX, AnswerAge.NOW, KeptIndex, KeptIndex.look).rows
        # A row that leaves out labels may be one of the session's.
        known, total = {row.run_id for row in rows}, Decimal(0)
        # The row's bound is that of the run's own job: what was reserved has the jobs that follow it, too.
        bounds = {
            run_id: self._reserved[key] / len(run_ids)
            for key, run_ids in [*self.runs.items()]
            for run_id in run_ids
            if key in self._reserved
        }
        for row in (row for row in rows if self._session.labels_match(row) is not False):
            # Without a job, a run that has ended has cost nothing.
            is_known = row.state in ENDS and (row.cost is not None or row.job_id is None)
            cost, own_bound = row.cost or Decimal(0), row.at_most or Decimal(0)
            bound = max(bounds.get(row.run_id, own_bound), own_bound)
            if not is_known:
                total += bound
            elif bound == own_bound or self._is_settled(source, row.run_id):
                total += cost
            else:  # the cost has the follow-up jobs that have ended, the difference of the bounds all of them
                total += max(cost, min(bound, cost + bound - own_bound))
        listed = {key for key, run_ids in [*self.runs.items()] if known.issuperset(run_ids)}
        unlisted = (cost for key, cost in [*self._reserved.items()] if key not in listed)
        return total + sum(unlisted, Decimal(0))

    def _is_settled(self, source: ConsoleSource, run_id: str) -> bool:
        """Whether no job follows the ended run any more; one read each time until then."""
        if run_id not in self._settled:
            try:
                record = read_run(source.clients, run_id).record
            except NotFound:  # removed or damaged
                return False
            self._settled |= {run_id} if is_over(record, EVALUATION) and is_over(record, REGISTRY) else set()
        return run_id in self._settled
