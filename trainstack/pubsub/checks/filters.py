"""Subscription filters over message attributes.

Source: https://cloud.google.com/pubsub/docs/subscription-message-filter
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lark import Lark, Token, Transformer, UnexpectedInput, v_args

from trainstack.errors import InvalidArgumentError

MAX_FILTER_BYTES = 256

Predicate: TypeAlias = Callable[[Mapping[str, str]], bool]

# Mixing AND and OR needs parentheses: the reference requires them "to create complete expressions".
_GRAMMAR = r"""
    ?start: conjunction | disjunction | term
    conjunction: term ("AND" term)+
    disjunction: term ("OR" term)+
    ?term: ("NOT" | "-") term -> negation
         | "(" start ")"
         | "attributes" ":" key -> present
         | "attributes" "." key "=" value -> equals
         | "attributes" "." key "!=" value -> differs
         | "hasPrefix" "(" "attributes" "." key "," value ")" -> prefix
    ?key: BARE | STRING
    ?value: STRING
    BARE: /[A-Za-z_][A-Za-z0-9_-]*/
    STRING: /"([^"\\]|\\["'\\abfnrtv]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[0-7]{1,3})*"/
    %ignore /\s+/
"""


def parse_filter(text: str) -> Predicate:
    """A predicate on a message's attributes; an empty filter matches every message.

    Raises:
        InvalidArgumentError: longer than 256 bytes or invalid; the message has the position.
    """
    if not text:
        return lambda _attributes: True
    size = len(text.encode())
    if size > MAX_FILTER_BYTES:
        raise InvalidArgumentError(
            f"Invalid filter: it has {size} bytes; at most {MAX_FILTER_BYTES} are allowed."
        )
    try:
        tree = _PARSER.parse(text)
    except UnexpectedInput as fault:
        column = getattr(fault, "column", 0)
        raise InvalidArgumentError(
            f"Invalid filter {text!r}: it cannot be parsed from column {column} on. Expected attributes:KEY, "
            'attributes.KEY = "VALUE", attributes.KEY != "VALUE", hasPrefix(attributes.KEY, "PREFIX"), '
            "NOT, AND, OR and parentheses; AND and OR need parentheses between them."
        ) from fault
    predicate: Predicate = _Compiler().transform(tree)
    return predicate


def _text_of(token: Token) -> str:
    if not token.startswith('"'):
        return str(token)
    # The grammar accepts only escapes that mean the same in a Python string.
    return token[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")


@v_args(inline=True)
class _Compiler(Transformer[Token, Predicate]):
    def present(self, key: Token) -> Predicate:
        name = _text_of(key)
        return lambda attributes: name in attributes

    def equals(self, key: Token, value: Token) -> Predicate:
        name, wanted = _text_of(key), _text_of(value)
        return lambda attributes: attributes.get(name) == wanted

    def differs(self, key: Token, value: Token) -> Predicate:
        name, refused = _text_of(key), _text_of(value)
        return lambda attributes: attributes.get(name) != refused

    def prefix(self, key: Token, value: Token) -> Predicate:
        name, start = _text_of(key), _text_of(value)
        return lambda attributes: name in attributes and attributes[name].startswith(start)

    def negation(self, inner: Predicate) -> Predicate:
        return lambda attributes: not inner(attributes)

    def conjunction(self, *parts: Predicate) -> Predicate:
        return lambda attributes: all(part(attributes) for part in parts)

    def disjunction(self, *parts: Predicate) -> Predicate:
        return lambda attributes: any(part(attributes) for part in parts)


_PARSER = Lark(_GRAMMAR, parser="lalr")
