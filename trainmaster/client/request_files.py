"""Requests, rules and orders in files on this machine, and the policy and schemas to check them with."""

import json
import os
import shlex
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from trainmaster.client.context import TEAM_VARIABLE, Context
from trainmaster.client.errors import Refused
from trainmaster.client.machines import shipped_machines
from trainmaster.orchestrator.core.admission.prices import Prices, prices_from
from trainmaster.orchestrator.core.documents.document import is_json, parse_document
from trainmaster.orchestrator.core.documents.faults import Refused as RefusedRequest
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.documents.placing import placed, rendered
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA, RequestRules
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainmaster.resources import ROOT

STDIN = "-"
SHIPPED_POLICY = ROOT / "functions" / "policy.yaml"
MAX_POLICY_BYTES = 4 * 1024 * 1024


class UnusableFile(Exception):
    """A file cannot be read, or is a policy that no deployment could use; one line for each problem."""


def read_input(name: str, stdin: BinaryIO) -> bytes:
    """The content of the file, or of standard input for `-`; of one too large for a request, one byte too much.

    Raises:
        UnusableFile: as `read_file`, or the file is a Python script.
    """
    if name == STDIN:
        return stdin.read(MAX_REQUEST_BYTES + 1)
    content = read_file(name, MAX_REQUEST_BYTES)
    if name.lower().endswith(".py"):
        submit = shlex.join(["trainmaster", "submit", "--script", name])
        raise UnusableFile(f"{name}: a Python script, not a request. To submit it: {submit}")
    return content


def read_file(name: str, at_most: int) -> bytes:
    """The file's content; of one larger than `at_most` bytes, one byte too much.

    Raises:
        UnusableFile: it is a folder, does not exist, or cannot be read.
    """
    try:
        with Path(name).open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnusableFile(f"{name}: not a regular file; for a pipe, write -")
            return file.read(at_most + 1)
    except IsADirectoryError as error:
        problem = f"{name}: a folder; name the files in it, for example {Path(name) / '*.yaml'}"
        raise UnusableFile(problem) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UnusableFile(f"{name}: {getattr(error, 'strerror', None) or error}") from error


def is_json_file(name: str, content: bytes) -> bool:
    """Whether the service would read a file of this name as JSON, and standard input by its content."""
    return is_json(content) if name == STDIN else name.lower().endswith(".json")


def read_policy(path: Path, context: Context) -> Policy:
    """The policy in the file, as the deployment of the context would use it.

    Raises:
        UnusableFile: it cannot be read, or is not a valid policy.
    """
    content = read_file(str(path), MAX_POLICY_BYTES)
    if len(content) > MAX_POLICY_BYTES:
        raise UnusableFile(f"{path}: larger than {MAX_POLICY_BYTES} bytes, too large for a policy")
    read = parse_document(content, as_json=False, what="policy")
    faults = [*read.faults, *schema_faults(schema("policy.v1"), read.value, read.spelled)]
    if faults:
        lines = (rendered(fault, str(path)) for fault in placed(faults, read))
        raise UnusableFile("\n".join(line for fault in lines for line in fault))
    try:
        return policy_from(read.value, names_of(context))
    except ValueError as error:
        raise UnusableFile(f"{path}: {error}") from error


def buckets_of(context: Context) -> Buckets:
    """The buckets that requests and rules are checked with."""
    return Buckets(
        inbox=context.inbox_bucket,
        ledger=context.ledger_bucket,
        models=context.models_bucket,
        champions=context.champions_bucket,
    )


def names_of(context: Context) -> dict[str, str]:
    """What `${project}` and the like stand for in this context."""
    return {
        "project": context.project,
        "region": context.region,
        "inbox_bucket": context.inbox_bucket,
        "models_bucket": context.models_bucket,
    }


def rules_for(context: Context, policy: Policy | None) -> RequestRules:
    """What the context's deployment checks requests, rules and orders of the context's team against.

    With this policy; None: with none.

    Raises:
        Refused: the policy has teams, and the context names none of them.
    """
    rules = RequestRules(
        schemas={each: schema(each) for each in (REQUEST_SCHEMA, RULE_SCHEMA, ORDER_SCHEMA)},
        policy=policy,
        region=context.region,
        today=datetime.now(UTC).date(),
        names=names_of(context),
        without_policy=shipped_machines() if policy is None else (),
    )
    teams = () if policy is None else tuple(policy.teams)
    team = context.team if len(teams) != 1 else context.team or teams[0]
    of_team = rules.of_team(team if teams else None)
    if isinstance(of_team, RefusedRequest):
        found = (
            f"no team is called {team!r}" if team else f"neither --team nor {TEAM_VARIABLE} names your team"
        )
        raise Refused(
            f"{found}; this deployment's teams: {listed(teams)}. "
            f"Choose yours: --team {teams[0]}, or export {TEAM_VARIABLE}={teams[0]}"
        )
    return of_team


def shipped_prices() -> Prices:
    """The price table as it is shipped."""
    # Any: the price table's schema, which the shipped file meets, guarantees the types.
    document: Any = parse_document((ROOT / "functions" / "prices.yaml").read_bytes(), as_json=False).value
    return prices_from(document)


def schema(schema_id: str) -> Mapping[str, Any]:
    """The JSON Schema with this id, as it is shipped."""
    found: dict[str, Any] = json.loads((ROOT / "schemas" / f"{schema_id}.schema.json").read_bytes())
    return found
