"""The deployment's settings. No other module reads the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from trainmaster.orchestrator.core.deployment_names import DEPLOYMENT_FORM, is_deployment_name, name_prefix
from trainmaster.orchestrator.core.errors import SettingsIncomplete
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.requests.placeholders import DEPLOYMENT
from trainmaster.orchestrator.core.requests.submission import Target

_ROOT = Path(__file__).resolve().parents[2]
SOURCE_DIR = _ROOT if (_ROOT / "main.py").is_file() else _ROOT / "functions"
"""The folder of main.py: the staged source, or functions/ in a checkout."""
LEASE_MARGIN = timedelta(seconds=60)
"""How much longer a lease lasts than the timeout of the function that holds it."""

_EMAIL = re.compile(r"[^@:\s]+@[^@:\s]+")

REQUIRED = {
    "GOOGLE_CLOUD_PROJECT": "project id",
    "TRAINMASTER_REGION": "Vertex AI region, for example us-central1",
    "TRAINMASTER_INBOX_BUCKET": "bucket name, without gs://",
    "TRAINMASTER_LEDGER_BUCKET": "bucket name, without gs://",
    "TRAINMASTER_MODELS_BUCKET": "bucket name, without gs://",
    "TRAINMASTER_CHAMPIONS_BUCKET": "bucket name, without gs://",
    "TRAINMASTER_NOTICES_TOPIC": "topic id",
    "TRAINMASTER_FUNCTION_TIMEOUT_S": "the function's deployed timeout in seconds",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The deployment, as the environment describes it. An endpoint of None means Google Cloud.

    `target` without a service account: Vertex AI chooses that of a job whose request names none. `secrets_dir` has the
    secrets of notices' receivers; `loopback_receiver` is HOST:PORT of a local stack's own receiver.
    """

    target: Target
    buckets: Buckets
    notices_topic: str
    function_timeout: timedelta
    policy_path: Path
    prices_path: Path
    schemas_dir: Path
    vertex_endpoint: str | None
    logging_endpoint: str | None
    monitoring_endpoint: str | None
    secrets_dir: Path | None = None
    loopback_receiver: str | None = None

    @property
    def names(self) -> Mapping[str, str]:
        """What the deployment's placeholders stand for, in its policy, requests and rules; `prefix` in the policy alone."""
        names = {**vars(self.target), "inbox_bucket": self.buckets.inbox}
        known = {name: names[name] for name in DEPLOYMENT}
        return {**known, "prefix": name_prefix(self.target.deployment)}

    @property
    def lease(self) -> timedelta:
        return self.function_timeout + LEASE_MARGIN


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The settings in these environment variables.

    Raises:
        SettingsIncomplete: variables are missing or invalid; the error names each of them.
    """
    given = {name: environment.get(name, "") for name in REQUIRED}
    problems = [f"{name} is not set: {REQUIRED[name]}" for name, text in given.items() if not text]
    uris = {name: text for name, text in given.items() if text.startswith("gs://")}
    problems += [f"{name} is {uris[name]!r}: leave out gs://" for name in uris if name.endswith("_BUCKET")]
    timeout = environment.get("TRAINMASTER_FUNCTION_TIMEOUT_S", "")
    if timeout and not (timeout.isdecimal() and int(timeout) > 0):
        problems.append(f"TRAINMASTER_FUNCTION_TIMEOUT_S is {timeout!r}: expected a whole number of seconds")
    account = environment.get("TRAINMASTER_TRAINER_ACCOUNT", "")
    if account and not _EMAIL.fullmatch(account):
        expected = "the email of a service account, without serviceAccount:"
        problems.append(f"TRAINMASTER_TRAINER_ACCOUNT is {account!r}: expected {expected}")
    deployment = environment.get("TRAINMASTER_DEPLOYMENT", "")
    if deployment and not is_deployment_name(deployment):
        problems.append(f"TRAINMASTER_DEPLOYMENT is {deployment!r}: expected {DEPLOYMENT_FORM}")
    if problems:
        raise SettingsIncomplete(tuple(problems))
    return Settings(
        target=Target(
            project=environment["GOOGLE_CLOUD_PROJECT"],
            region=environment["TRAINMASTER_REGION"],
            models_bucket=environment["TRAINMASTER_MODELS_BUCKET"],
            service_account=account or None,
            deployment=deployment,
        ),
        buckets=Buckets(
            inbox=environment["TRAINMASTER_INBOX_BUCKET"],
            ledger=environment["TRAINMASTER_LEDGER_BUCKET"],
            models=environment["TRAINMASTER_MODELS_BUCKET"],
            champions=environment["TRAINMASTER_CHAMPIONS_BUCKET"],
        ),
        notices_topic=environment["TRAINMASTER_NOTICES_TOPIC"],
        function_timeout=timedelta(seconds=int(timeout)),
        policy_path=Path(environment.get("TRAINMASTER_POLICY") or SOURCE_DIR / "policy.yaml"),
        prices_path=SOURCE_DIR / "prices.yaml",
        schemas_dir=schemas_dir(SOURCE_DIR),
        vertex_endpoint=environment.get("VERTEX_EMULATOR_HOST") or None,
        logging_endpoint=environment.get("LOGGING_EMULATOR_HOST") or None,
        secrets_dir=Path(secrets) if (secrets := environment.get("TRAINMASTER_SECRETS")) else None,
        loopback_receiver=environment.get("LOOPBACK_RECEIVER") or None,
        monitoring_endpoint=environment.get("MONITORING_EMULATOR_HOST") or None,
    )


def schemas_dir(source_dir: Path) -> Path:
    """The schemas: next to main.py in a deployment, next to functions/ in a checkout."""
    staged = source_dir / "schemas"
    return staged if staged.is_dir() else source_dir.parent / "schemas"
