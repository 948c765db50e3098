"""Faults of a request that holds a secret instead of naming one.

What a request says is kept on record, shown in consoles and written into the job. Vertex AI gives training jobs
no variables from Secret Manager (its `SecretEnvVar` is for reasoning engines alone), so a request names the secret
and the program reads it: docs/explanation/security.md. A fault here never quotes what it found.
"""

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import line_starts
from trainmaster.orchestrator.core.documents.values import Document, Path, iter_texts, list_at, mapping_at
from trainmaster.orchestrator.core.policy.policy import among
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.matrix import MATRIX, words_of

TOKEN_FORMATS = {
    "a Google API key": re.compile(r"AIza[0-9A-Za-z_-]{35}"),
    "a Google access token": re.compile(r"ya29\.[0-9A-Za-z_-]{20,}"),
    "a Google OAuth client secret": re.compile(r"GOCSPX-[0-9A-Za-z_-]{20,}"),
    "a GitHub token": re.compile(r"gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{50,}"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a Slack token": re.compile(r"xox[abprs]-[0-9A-Za-z-]{10,}"),
    "a Hugging Face token": re.compile(r"\bhf_[0-9A-Za-z]{30,}"),
    # Begins where a run of its characters does: of all places in a run where it may begin, the first one matches if any.
    "a JSON web token": re.compile(
        r"(?<![0-9A-Za-z_-])(?>[0-9A-Za-z_-]*?\beyJ)[0-9A-Za-z_-]{10,}+\.eyJ[0-9A-Za-z_-]{10,}+\.[0-9A-Za-z_-]*"
    ),
    "an Azure access key": re.compile(r"\b(?i:AccountKey|SharedAccessKey)=[0-9A-Za-z+/]{20,}+={0,2}"),
    "a password in a URI": re.compile(r"[a-z0-9+.-]://[^/\s:@$]{1,200}:[^/\s@$]{1,200}@"),
}
"""How the services that give them out write them. No pattern tries a character more than a few times, so that the work
is linear in the text's length. Sources: their own pages, and the patterns of GitHub's
secret scanning, https://docs.github.com/code-security/secret-scanning."""
_FORMATS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\"private_key\"\s*:"),
    **TOKEN_FORMATS,
}
_NAMED = re.compile(r"(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z0-9_.-]++)=(?=(?P<value>[^\s;&]{1,200}))")
"""Also within the value of another name: `--data=https://host/x?token=…`, `AccountName=…;AccountKey=…`."""
_REFERENCE = re.compile(r"projects/[^/\s]+/secrets/[^/\s]+(/versions/[^/\s]+)?")
_SUBSTITUTED = re.compile(
    r"""["']?
    (?: \$\$?
        (?: \(.* | \{[A-Za-z_][A-Za-z0-9_.]*+ (?: \} | :?\?.* | :?-?\}?\Z ) | [A-Z_][A-Z0-9_]*+ | [0-9@*] )
        [-_.:/,]?
    )++
    (?: ["'`|)<>].* )?""",
    re.DOTALL | re.VERBOSE,
)
"""Nothing but what a shell, Vertex AI (`$(NAME)`) or this service fills in. A shell's names in lower case need braces:
`$ecret` is as likely a password, which only looks like a variable."""
_FLAG = re.compile(r"--?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""One word of a name: `api_key`, `API-KEY` and `apiKey` have the same two."""
_SECRETS = frozenset({"password", "passwd", "passphrase", "secret"})
_JOINED = ("password", "passwd", "apikey", "apitoken", "accesskey", "secretkey", "privatekey", "accountkey")
_MAYBE = frozenset({"pass", "pwd", "token"})
_KEYS = frozenset({"api", "access", "secret", "private", "account", "auth", "signing"})
_VOCABULARY = frozenset({"bos", "cls", "end", "eos", "image", "mask", "pad", "prompt", "sep", "special", "start", "stop", "unk"})  # fmt: skip
_PASSES = frozenset({"all", "backward", "each", "first", "forward", "last", "multi", "one", "per", "second", "single", "two"})  # fmt: skip
_HARMLESS_BEFORE = frozenset({"max", "min", "n", "num", *_VOCABULARY, *_PASSES})
"""Before `token` and `pass`: the tokens of a vocabulary, and the passes of a filter or through data."""
_HARMLESS = re.compile(
    r"[-+]?[0-9]*+\.?[0-9]*+|(?i:true|false|yes|no|on|off|none|null|auto)|[</.~\[].*|[a-z]+://.*"
)
"""A number, a switch, a path or a word in brackets, which no password is under a name with several meanings."""
_RANDOM = re.compile(r"[0-9a-fA-F]{32,}|(?=[^\s]*[0-9])(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[0-9A-Za-z+/=]{32,}")

_MENTION = re.compile(
    r"""(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z0-9_.-]++)(?=(?P<until>["'\s:=,\-\[{|>]{1,60})(?P<value>\S{0,200}))"""
)
"""A word, what may stand between a name and its value, on the next line too, and what may be the value's beginning."""
_NAMING = re.compile(r"""(?:^|[\s"'{,])name["']?\s{0,8}[:=]\s{0,8}["']?\Z""")
_LINE_BEGIN = re.compile(r"""(?:^|\n)[\s"'-]*(?:export\s+)?\Z""")
_BEFORE_CHARS = 40
_LINE_BEFORE_CHARS = 1000
_NAME_MAX_CHARS = 100
"""The end of a longer name decides whether it is a secret's."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END|\Z)", re.DOTALL)


def secret_lines(read: Document, names: Sequence[str]) -> frozenset[int]:
    """The lines of the text, counted from 1, that a report must not quote because they may hold a secret.

    More than hold one: it also covers texts that cannot be parsed, and values that no check reads. `names` are the
    policy's patterns of secrets' names. The work is linear in the text's length.
    """
    text, is_name = read.text, functools.cache(lambda name: bool(names) and _may_name_secret(name, names))
    patterns = (_PRIVATE_KEY, *_FORMATS.values())
    spans = [match.span() for pattern in patterns for match in pattern.finditer(text)]
    for mention in _MENTION.finditer(text) if names else ():
        if is_name(mention["name"]):
            spans += _span_of(mention, text, names)
    starts = line_starts(text, as_json=read.as_json)
    lines = (range(bisect_right(starts, start), bisect_right(starts, end) + 1) for start, end in spans)
    return frozenset(line for numbers in lines for line in numbers)


def _span_of(mention: re.Match[str], text: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From where to where the secret may be that is mentioned; nothing if this is not a name with a value."""
    start, end, name = mention.start(), mention.end("until"), mention["name"]
    before = text[max(0, start - _BEFORE_CHARS) : start]
    if _NAMING.search(before):
        # The value, which has its own key, may also be in the line before its name.
        above = text.rfind("\n", max(0, start - _LINE_BEFORE_CHARS), start)
        yield (start if above < 0 else above), end
        return
    has_value = not set(":=").isdisjoint(mention["until"]) or name.startswith("-")
    value = mention["value"].rstrip("\"',}]") or mention["value"]
    if (has_value or _LINE_BEGIN.search(before)) and _says_secret(name, value, names):
        yield start, end


def secret_faults(draft: Draft) -> list[Fault]:
    """One fault for each place that seems to hold a secret, sorted by path; without a policy nothing is refused."""
    if draft.policy is None:
        return []
    found = dict(_by_name(draft.policy.env.secrets, draft))
    for path, text, is_key in iter_texts(draft.document):
        kind = next((kind for kind, pattern in _FORMATS.items() if pattern.search(text)), None)
        if kind is not None and not is_key:
            found[path] = kind
    return sorted(
        Fault(
            at=path,
            problem="a request must not contain a secret, because it is stored and displayed",
            found=f"{what}, not shown here",
            allowed="projects/PROJECT/secrets/NAME/versions/VERSION, which the program reads itself",
            repair="store it in Secret Manager, refer to it here, and rotate it: the dropped file exposes it",
            is_secret=True,
        )
        for path, what in found.items()
    )


def _by_name(names: Sequence[str], draft: Draft) -> Iterator[tuple[Path, str]]:
    """Variables and flags whose names say that their values are secrets."""
    for here, place in draft.places.items():
        for name, value in mapping_at(place, "env").items():
            if isinstance(value, str) and names:
                says = _says_secret(str(name), value, names)
                if within := str(name) if says else _find_secret(value, None, names):
                    yield (*here, "env", str(name)), f"the value of {within}"
        for key in ("command", "args"):
            text = place.get(key)
            if isinstance(text, str) and any(_secrets_of(text.split(), names)):
                yield (*here, key), "a secret"
            words = list_at(place, key)
            for index, name in enumerate(_secrets_of(words, names)):
                if name:
                    yield (*here, key, index), f"the value of {name}"
    matrix = mapping_at(draft.document, MATRIX)
    for flag in matrix:
        for index, name in enumerate(_secrets_of(words_of(matrix, flag), names)):
            if name:
                yield (MATRIX, flag, index), f"the value of {name}"


def _secrets_of(words: Sequence[object], names: Sequence[str]) -> Iterator[str]:
    """For each word the name of the secret in it, or an empty string."""
    for before, word in zip((None, *words), words, strict=False):
        yield _find_secret(word, before, names) if names and isinstance(word, str) else ""


def _find_secret(word: str, before: object, names: Sequence[str]) -> str:
    """The name, one of the names of secrets, whose value the word holds: `--name=value`, or after `--name`."""
    for pair in _NAMED.finditer(word):
        if _says_secret(pair["name"], pair["value"], names):
            return pair["name"]
    flag = _FLAG.fullmatch(before) if isinstance(before, str) else None
    if flag is not None and not word.startswith("-") and _says_secret(flag["name"], word, names):
        return flag["name"]
    return ""


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name[-_NAME_MAX_CHARS:])]


def _is_listed(name: str, names: Sequence[str]) -> bool:
    return among(re.sub(r"[.-]", "_", name.lstrip("-.0123456789")[-_NAME_MAX_CHARS:]).upper(), names)


def _may_name_secret(name: str, names: Sequence[str]) -> bool:
    """Whether some value under this name is a secret."""
    words = _words_of(name)
    last = words[-1] if words else ""
    is_known = last in {*_SECRETS, *_MAYBE, "key"} or last.endswith(_JOINED)
    return bool(words) and (is_known or _is_listed(name, names))


def _says_secret(name: str, value: str, names: Sequence[str]) -> bool:
    """Whether the value of a variable or flag of this name is a secret: one rule for both.

    The last words of the name decide, and the value where they have several meanings.
    """
    words = _words_of(name)
    if not words or not _holds(value):
        return False
    *above, last = words
    if last in _SECRETS or last.endswith(_JOINED) or _is_listed(name, names):
        return True
    before = above[-1] if above else ""
    if last == "key":
        return before in _KEYS or _RANDOM.fullmatch(value) is not None
    return last in _MAYBE and before not in _HARMLESS_BEFORE and _HARMLESS.fullmatch(value) is None


def _holds(value: str) -> bool:
    """Whether the value is more than the name of a secret, of a variable, or nothing."""
    return bool(value.strip()) and not _SUBSTITUTED.fullmatch(value) and _REFERENCE.fullmatch(value) is None
