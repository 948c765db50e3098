"""Secrets in files that are about to be uploaded, recognized by their content."""

import re

from trainmaster.orchestrator.core.requests.checks.secrets import TOKEN_FORMATS

SEARCHED_MAX_BYTES = 1024 * 1024
"""How much of each file is searched. Credentials are small files; what is larger is data."""
_KEY_STORES = {
    b"\xfe\xed\xfe\xed": "a Java key store",
    b"\xce\xce\xce\xce": "a Java key store",
    b"\x03\xd9\xa2\x9a": "a KeePass database",
    b"PuTTY-User-Key-File-": "a PuTTY private key",
}
"""How they begin: https://github.com/file/file/tree/master/magic/Magdir, files java, keepass and ssh, read 2026-11."""
_BY_SUFFIX = {
    ".p12": "a PKCS #12 key store",
    ".pfx": "a PKCS #12 key store",
    ".tfstate": "a Terraform state",
    ".tfstate.backup": "a Terraform state",
}
"""What no beginning tells: DER has no magic bytes, and a state holds its resources' secrets in plain text under any name."""
_FILE_FORMATS = {
    # With the key itself: source code that looks for keys has the first line alone.
    "a private key": re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|[\s\"',]){1,40}(?:[0-9A-Za-z+/]{16}|Proc-Type:|Version:|Comment:)"
    ),
    "an age key": re.compile(r"AGE-SECRET-KEY-1[0-9A-Z]{50}"),
    "gcloud's credentials of a user": re.compile(r'"refresh_token"\s{0,8}:\s{0,8}"[^"\s]{8}'),
    "an OAuth client secret": re.compile(r'"client_secret"\s{0,8}:\s{0,8}"[^"\s]{8}'),
    "AWS credentials": re.compile(
        r"(?i:aws_secret_access_key)[\"']?\s{0,8}[=:]\s{0,8}[\"']?[0-9A-Za-z+/]{40}"
    ),
    "a Kaggle key": re.compile(
        r'"username"\s{0,8}:\s{0,8}"[^"\s]{1,100}"\s{0,8},\s{0,8}"key"\s{0,8}:\s{0,8}"[0-9a-f]{32}"'
        r"|KAGGLE_KEY[\"'\]]{0,2}\s{0,8}[=:]\s{0,8}[\"']?[0-9a-f]{32}|\bKGAT_[0-9a-f]{32}"
    ),
    "a Weights & Biases key": re.compile(
        r"(?:WANDB_API_KEY[\"'\]]{0,2}\s{0,8}[=:]|wandb\.login\([^\n)]{0,80}key\s{0,8}=)\s{0,8}[\"']?[0-9a-f]{40}"
    ),
    "an OpenAI key": re.compile(
        r"(?<![0-9A-Za-z_-])sk-(?:[a-z]{1,10}-)?[0-9A-Za-z_-]{20,200}?T3BlbkFJ[0-9A-Za-z_-]{20}"
    ),
    "an Anthropic key": re.compile(r"\bsk-ant-[a-z0-9]{1,10}-[0-9A-Za-z_-]{40}"),
    "a GitLab token": re.compile(r"\bglpat-[0-9A-Za-z_-]{20}"),
    "a Stripe key": re.compile(r"\b[sr]k_live_[0-9A-Za-z]{16}"),
    "a Databricks token": re.compile(r"\bdapi[0-9a-f]{32}\b"),
    "a password for a machine, as in .netrc": re.compile(
        r"\b(?:machine\s{1,8}\S{1,200}|default)\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}\S"
    ),
    "a registry's password, as in Docker's config.json": re.compile(
        r'"auth"\s{0,8}:\s{0,8}"[0-9A-Za-z+/]{16,}={0,2}"'
    ),
    "a Kubernetes client key": re.compile(r"client-key-data:\s{0,8}[0-9A-Za-z+/]{16}"),
    "a PyPI token": re.compile(r"pypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{20}"),
    "an npm token": re.compile(r"_authToken\s{0,8}=\s{0,8}[^\s$]{16}|\bnpm_[0-9A-Za-z]{36}"),
    "hashes of passwords": re.compile(r"(?m)^[A-Za-z_][\w.-]{0,31}:\$(?:[156y]|2[aby]|argon2id?)\$"),
}
"""How the tools write them, each with enough of the value that a program that only names the field is none.
The repeats are bounded, so that the work is linear in the file's size. Sources: each tool's own documentation."""
_OF_DATA = {
    # Not a placeholder, and not the word itself, as in examples.
    "a password in a URI": re.compile(
        r"[a-z0-9+.-]://[^/\s:@$]{1,200}:(?!(?i:pass|password|passwd|secret|token)@)[^/\s:@${}<>%*\[\]]{3,200}@"
    )
}
"""In place of those of the same names. Programs and their tests have them as examples, and fill them in as they run."""
_OF_VARIABLES = {
    "a variable with a secret": re.compile(
        r"(?m)^(?:export\s{1,8})?[A-Z0-9_]{0,80}(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY)=[^\s${<]{6}"
    )
}
"""Of files whose names end in .env."""


def find_secret(name: str, content: bytes) -> str | None:
    """What kind of secret the file seems to hold; None if none is recognized.

    Args:
        name: the file's name or path.
        content: all of it; the first SEARCHED_MAX_BYTES are searched.
    """
    lower = name.lower()
    for suffix, kind in _BY_SUFFIX.items():
        if lower.endswith(suffix):
            return kind
    for magic, kind in _KEY_STORES.items():
        if content.startswith(magic):
            return kind
    searched = content[:SEARCHED_MAX_BYTES]
    text = searched.decode(
        "utf-16" if searched.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1", "replace"
    )
    formats = {**_FILE_FORMATS, **TOKEN_FORMATS, **_OF_DATA}
    if lower.endswith(".env"):
        formats |= _OF_VARIABLES
    elif lower.endswith(".py"):
        formats = {kind: pattern for kind, pattern in formats.items() if kind not in _OF_DATA}
    return next((kind for kind, pattern in formats.items() if pattern.search(text)), None)
