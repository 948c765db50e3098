"""The policy says which flags of the trainer a tuning may vary: all that shape the training."""

from pathlib import Path

import yaml

from trainer import workloads
from trainer.flags import FLAGS

ROOT = Path(__file__).resolve().parents[2]
SAME_FOR_ALL_TRIALS = {
    "data_dir",
    "download",
    "job_dir",
    "reported_metrics",
    "strategy",
    "checkpoint_every_s",
    "checkpoint_steps",
    "peers_within_s",
}


def test_the_policy_lists_every_flag_of_the_trainer_that_a_trial_may_vary() -> None:
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    (row,) = [row for row in policy["image_flags"] if row["images"][0].endswith("/trainmaster/trainer")]
    own = {flag for name in workloads.names() for flag in workloads.workload_named(name).hyperparameters}
    assert set(row["flags"]) == FLAGS.keys() - SAME_FOR_ALL_TRIALS | own
