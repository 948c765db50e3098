"""Names of deployments, of which a project may have several, and of their service accounts."""

import hashlib
import re

ACCOUNT_ID_MAX_CHARS = 30  # https://cloud.google.com/iam/docs/service-accounts-create
ACCOUNT_HASH_CHARS = 8
# The names of other accounts begin with these words: `tm-eval-trainer` is that of a team's evaluations. Cloud Storage and
# workload identity pools reserve names that begin so: https://cloud.google.com/storage/docs/buckets#naming and
# https://cloud.google.com/iam/docs/reference/rest/v1/projects.locations.workloadIdentityPools/create
_DEPLOYMENT = re.compile(r"(?!(build|ci|eval|events|on)$|goog|g00g|gcp)[a-z][a-z0-9]{0,5}")
DEPLOYMENT_FORM = (
    "1 to 6 lower-case letters and digits, the first a letter; not build, ci, eval, events or on, and nothing that begins "
    "with goog, g00g or gcp"
)


def is_deployment_name(text: str) -> bool:
    """Whether a deployment may have this name: `tm-<name>-on-request-published` is as long as an account's id may be."""
    return _DEPLOYMENT.fullmatch(text) is not None


def name_prefix(deployment: str) -> str:
    """What the names of a deployment's resources have before their own: `<name>-`; nothing without a name."""
    return deployment and f"{deployment}-"


def account_email(name: str, project: str, prefix: str = "") -> str:
    """The email of the deployment's account of that name, `tm-<prefix><name>`; an id that is too long ends in a hash."""
    whole = f"tm-{prefix}{name}"
    if len(whole) > ACCOUNT_ID_MAX_CHARS:
        kept = whole[: ACCOUNT_ID_MAX_CHARS - ACCOUNT_HASH_CHARS - 1]
        whole = f"{kept}-{hashlib.sha256(whole.encode()).hexdigest()[:ACCOUNT_HASH_CHARS]}"
    return f"{whole}@{project}.iam.gserviceaccount.com"


def team_account(team: str, project: str, prefix: str = "") -> str:
    """The email of the service account that the team's jobs run as."""
    return account_email(f"trainer-{team}", project, prefix)


def evaluation_account(team: str | None, project: str, prefix: str = "") -> str:
    """The email of the service account that scores the models of the team, or of a deployment without teams."""
    return account_email("eval" if team is None else f"eval-{team}", project, prefix)
