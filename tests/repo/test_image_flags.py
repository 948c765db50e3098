"""The policy says which flags of the trainer a tuning may vary: all that shape the training."""

from pathlib import Path

import yaml

from trainer import workloads
from trainer.devices.choices import Strategy
from trainer.settings.settings import SETTINGS
from trainmaster.orchestrator.core.requests.checks.programs import STRATEGIES

ROOT = Path(__file__).resolve().parents[2]
SAME_FOR_ALL_TRIALS = {
    "checkpoint_every_s",
    "checkpoint_steps",
    "data_dir",
    "deterministic",
    "export",
    "jit",
    "job_dir",
    "peers_within_s",
    "profile",
    "reported_metrics",
    "steps_per_execution",
    "strategy",
    "start_from",
    "validation_freq",
}
"""What does not shape a model: where things are, how a run survives, and how its replicas and devices compute."""


def test_the_policy_lists_every_flag_of_the_trainer_that_a_trial_may_vary() -> None:
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    (row,) = [row for row in policy["image_flags"] if row["images"][0].endswith("trainmaster/trainer")]
    own = {flag for name in workloads.workload_names() for flag in workloads.workload_named(name).flags}
    assert set(row["flags"]) == {"workload", *SETTINGS, *own} - SAME_FOR_ALL_TRIALS


def test_a_request_may_name_every_strategy_of_the_trainer_and_no_other() -> None:
    assert set(STRATEGIES) == set(Strategy)
