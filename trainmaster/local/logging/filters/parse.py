"""Text to tree."""

from functools import lru_cache

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from trainmaster.local.logging.filters.tree import (
    EVERYTHING,
    And,
    Anywhere,
    Comparison,
    FilterError,
    Node,
    Not,
    Operator,
    Or,
    Value,
)

MAX_FILTER_CHARACTERS = 20_000
MAX_DEPTH = 100

# NOT binds tightest, then OR, then AND, which may also be left out: https://google.aip.dev/160.
_GRAMMAR = r"""
    ?start: conjunction
    conjunction: disjunction (_AND? disjunction)*
    disjunction: term (_OR term)*
    ?term: (_NOT | _MINUS) term -> negation
         | "(" conjunction ")"
         | comparison
         | FUNCTION "(" (value ("," value)*)? ")" -> call
         | value -> anywhere
    comparison: (PATH | TEXT | STRING) OPERATOR (value | "(" value (_OR value)* ")")
    value: SIGNED | PATH | TEXT | STRING

    _AND.4: /AND(?![\w.\/%+*@$-])/
    _OR.4: /OR(?![\w.\/%+*@$-])/
    _NOT.4: /NOT(?![\w.\/%+*@$-])/
    _MINUS: "-"
    OPERATOR: /=~|!~|!=|<=|>=|=|<|>|:/
    FUNCTION.3: /[A-Za-z_]\w*(?=\()/
    SIGNED.2: /-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?(?![\w.\/%+*@$-])/
    PATH.1: /([\w\/%+*@$][\w\/%+*@$-]*|"([^"\\]|\\.)*")(\.([\w\/%+*@$][\w\/%+*@$-]*|"([^"\\]|\\.)*"))+/s
    TEXT: /(?!(AND|OR|NOT)(?![\w.\/%+*@$-]))[\w\/%+*@$][\w\/%+*@$-]*/
    STRING: /"([^"\\]|\\.)*"/s
    COMMENT: /--[^\n]*/
    %ignore COMMENT
    %ignore /\s+/
"""


@lru_cache(maxsize=256)
def parse_filter(text: str) -> Node:
    """The tree; text without anything but spaces and comments is `EVERYTHING`.

    Raises:
        FilterError: too long, too deep, or no filter of this language, with the place.
    """
    if len(text) > MAX_FILTER_CHARACTERS:
        raise FilterError(f"it has {len(text)} characters, at most {MAX_FILTER_CHARACTERS} are allowed")
    _check_depth(text)
    try:
        tokens = _PARSER.lex(text)
        if next(iter(tokens), None) is None:
            return EVERYTHING
        node: Node = _Builder().transform(_PARSER.parse(text))
    except UnexpectedInput as fault:
        raise _described(fault, text) from fault
    except VisitError as fault:
        raise fault.orig_exc from fault
    except RecursionError as fault:
        raise FilterError("it is nested too deeply") from fault
    return node


def _check_depth(text: str) -> None:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise FilterError(f"its parentheses are {deepest} deep, at most {MAX_DEPTH} are allowed")


def _described(fault: UnexpectedInput, text: str) -> FilterError:
    match fault:
        case UnexpectedToken(token=Token(type="$END")):
            lines = text.split("\n")
            return FilterError("it ends too early", line=len(lines), column=len(lines[-1]) + 1)
        case UnexpectedToken(token=token):
            return FilterError(f"{str(token)!r} is not expected here", line=fault.line, column=fault.column)
        case UnexpectedCharacters(char=character):
            reason = (
                f"{character!r} begins nothing known; put values with special characters in double quotes"
            )
            return FilterError(reason, line=fault.line, column=fault.column)
        case _:
            return FilterError(
                "it makes no sense", line=getattr(fault, "line", 0), column=getattr(fault, "column", 0)
            )


def _unquoted(text: str) -> str:
    """Without quotes and escapes; an unknown escape stands for its character, so that regular expressions survive."""
    out: list[str] = []
    characters = iter(text[1:-1])
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        escaped = next(characters)
        out.append(escaped if escaped in '"\\' else _ESCAPES.get(escaped, f"\\{escaped}"))
    return "".join(out)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _segments(token: Token) -> tuple[str, ...]:
    """The parts of a path; a quoted part may hold dots."""
    if token.type == "TEXT":
        return (str(token),)
    parts: list[str] = []
    rest = str(token)
    while rest:
        if rest.startswith('"'):
            end = _closing_quote(rest) + 1
            parts.append(_unquoted(rest[:end]))
        else:
            end = rest.find(".") if "." in rest else len(rest)
            parts.append(rest[:end])
        rest = rest[end + 1 :]
    return tuple(parts)


def _closing_quote(text: str) -> int:
    at = 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    def value(self, token: Token) -> Value:
        if token.type == "STRING":
            return Value(text=_unquoted(token), quoted=True)
        if '"' in token:
            raise FilterError(
                f"the value {str(token)!r} is half quoted", line=token.line or 0, column=token.column or 0
            )
        return Value(text=str(token), quoted=False)

    def conjunction(self, *parts: Node) -> Node:
        return parts[0] if len(parts) == 1 else And(parts=parts)

    def disjunction(self, *parts: Node) -> Node:
        return parts[0] if len(parts) == 1 else Or(parts=parts)

    def negation(self, part: Node) -> Node:
        return Not(part=part)

    def anywhere(self, value: Value) -> Node:
        return Anywhere(text=value.text)

    def call(self, name: Token, *_arguments: Value) -> Node:
        raise FilterError(
            f"the function {str(name)!r} is not imitated", line=name.line or 0, column=name.column or 0
        )

    def comparison(self, path: Token, operator: Token, *values: Value) -> Node:
        segments, compared_by = _segments(path), Operator(str(operator))
        each = tuple(Comparison(path=segments, operator=compared_by, value=value) for value in values)
        return each[0] if len(each) == 1 else Or(parts=each)


_PARSER = Lark(_GRAMMAR, parser="lalr")
