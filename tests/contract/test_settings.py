"""The environment and the policy file are checked completely; a log entry is one line whatever its text."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.narrowing import present
from trainmaster.orchestrator.core.errors import PolicyInvalid, SettingsIncomplete
from trainmaster.orchestrator.settings import REQUIRED, settings_from
from trainmaster.orchestrator.wiring import Wiring

WHOLE = {
    "GOOGLE_CLOUD_PROJECT": "my-project",
    "TRAINMASTER_REGION": "us-central1",
    "TRAINMASTER_INBOX_BUCKET": "inbox",
    "TRAINMASTER_LEDGER_BUCKET": "ledger",
    "TRAINMASTER_MODELS_BUCKET": "models",
    "TRAINMASTER_CHAMPIONS_BUCKET": "champions",
    "TRAINMASTER_NOTICES_TOPIC": "notices",
    "TRAINMASTER_FUNCTION_TIMEOUT_S": "120",
}


def test_a_whole_environment_is_enough() -> None:
    settings = settings_from(WHOLE)
    assert settings.lease == timedelta(seconds=180)
    assert settings.policy_path.name == "policy.yaml"
    assert settings.prices_path == settings.policy_path.with_name("prices.yaml")
    assert settings.vertex_endpoint is None


def test_every_missing_variable_is_named_at_once() -> None:
    with pytest.raises(SettingsIncomplete) as incomplete:
        settings_from({})
    assert all(any(name in problem for problem in incomplete.value.problems) for name in REQUIRED)
    assert incomplete.value.retryable


def test_unusable_values_are_named_with_their_repair() -> None:
    with pytest.raises(SettingsIncomplete) as incomplete:
        settings_from(
            {**WHOLE, "TRAINMASTER_INBOX_BUCKET": "gs://inbox", "TRAINMASTER_FUNCTION_TIMEOUT_S": "2m"}
        )
    assert incomplete.value.problems == (
        "TRAINMASTER_INBOX_BUCKET is 'gs://inbox': leave out gs://",
        "TRAINMASTER_FUNCTION_TIMEOUT_S is '2m': expected a whole number of seconds",
    )


def test_jobs_without_an_account_run_as_the_one_that_the_deployment_names() -> None:
    account = "tm-trainer@my-project.iam.gserviceaccount.com"
    settings = settings_from({**WHOLE, "TRAINMASTER_TRAINER_ACCOUNT": account})
    assert Wiring(settings).services().target.service_account == account
    assert Wiring(settings_from(WHOLE)).services().target.service_account is None


def test_an_account_is_named_by_its_email_alone() -> None:
    member = "serviceAccount:tm-trainer@my-project.iam.gserviceaccount.com"
    with pytest.raises(SettingsIncomplete, match="without serviceAccount:"):
        settings_from({**WHOLE, "TRAINMASTER_TRAINER_ACCOUNT": member})


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], Wiring]:
    def wired(text: str) -> Wiring:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return Wiring(settings_from({**WHOLE, "TRAINMASTER_POLICY": str(path)}))

    return wired


def test_the_shipped_policy_is_filled_with_the_deployments_names() -> None:
    policy = present(Wiring(settings_from(WHOLE)).services().request_rules().policy)
    assert policy.regions == ("us-central1",)
    assert policy.output_prefixes == ("gs://models",)


def test_a_faulty_policy_is_reported_whole_and_events_come_again(policy: Callable[[str], Wiring]) -> None:
    with pytest.raises(PolicyInvalid) as invalid:
        policy("schema: policy.v1\nimages: x\nmax_replica: 3\n").services().request_rules()
    told = "\n".join(invalid.value.faults)
    assert "$.images: expected a list" in told
    assert "did you mean 'max_replicas'?" in told
    assert invalid.value.retryable


def test_a_missing_policy_is_reported(tmp_path: Path) -> None:
    wiring = Wiring(settings_from({**WHOLE, "TRAINMASTER_POLICY": str(tmp_path / "none.yaml")}))
    with pytest.raises(PolicyInvalid, match=r"none\.yaml"):
        wiring.services().request_rules()


def test_every_delivery_has_an_attempt_of_its_own() -> None:
    wiring = Wiring(settings_from(WHOLE))
    assert len({wiring.services().attempt for _ in range(100)}) == 100
