"""The Logging query language: text to tree, tree to text, tree to predicate.

Source: https://cloud.google.com/logging/docs/view/logging-query-language
"""

from trainmaster.local.logging.filters.compile import Predicate, compile_filter
from trainmaster.local.logging.filters.parse import parse_filter
from trainmaster.local.logging.filters.tree import FilterError

__all__ = ["FilterError", "Predicate", "compile_filter", "parse_filter"]
