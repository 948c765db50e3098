"""A dropped rule, read and checked whole: either a sound one or everything that is wrong with it."""

from dataclasses import dataclass
from orchestrator.core.launch.request import Refused, Standards
from orchestrator.core.retrain.book import Book
from orchestrator.core.retrain.rule import Rule

MAX_RULE_BYTES = 64 * 1024
RULE_SCHEMA = "retraining_rule.v1"
"""`Standards.schemas` must hold it beside the request's schema."""


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The deployment's own buckets, without gs://."""

    inbox: str
    ledger: str
    models: str


def rule_in(
    content: bytes,
    *,
    dropped_name: str,
    generation: int,
    as_json: bool,
    standards: Standards,
    buckets: Buckets,
    book: Book,
    template: bytes | None,
) -> Rule | Refused:
    """The rule in these bytes, or every fault of text, schema, conditions, request, policy and loops at once.

    Args:
        template: content of the object that `template_uri` found named; None where it is missing or none is named.
    """
    raise NotImplementedError


def template_uri(content: bytes, *, as_json: bool) -> str | None:
    """The `gs://` URI of the object which the rule takes its request from, to be read before `rule_in`.

    None where the rule names none, or none that `rule_in` would take.
    """
    raise NotImplementedError
