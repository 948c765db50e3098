"""What lines of a log report, in the forms that frameworks print, made by them or copied from published logs."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.logs.report import METRICS_MAX, Report, reports_in

KERAS = """
import keras, numpy
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
x = numpy.ones((8, 2))
for verbose in (1, 2):
    model.fit(x, x[:, :1], epochs=2, batch_size=2, validation_split=0.5, verbose=verbose)
"""


def reports(text: str) -> list[Report]:
    return list(reports_in(text, text))


@pytest.mark.slow
def test_what_keras_prints_here_with_a_bar_and_without() -> None:
    printed = subprocess.run([sys.executable, "-c", KERAS], check=True, capture_output=True, text=True).stdout
    begun = [(each.epoch, each.epochs) for each in reports(printed) if each.epoch is not None]
    ends = [
        (each.step, each.steps, len(each.metrics)) for each in reports(printed) if "val_loss" in each.metrics
    ]
    assert (begun, ends) == ([(1, 2), (2, 2)] * 2, [(2, 2, 4)] * 4)


LINES = {
    # Printed by lightgbm 4.7.0 and xgboost 3.2.0: log_evaluation, xgboost.train, and the cv of both.
    "[10]\tvalid_0's auc: 0.95\tvalid_0's l2: 0.37": Report(
        metrics={"valid_0's auc": 0.95, "valid_0's l2": 0.37}, step=10
    ),
    "[10]\tvalid's auc: 0.94538 + 0.0171826": Report(metrics={"valid's auc": 0.94538}, step=10),
    "[0]\ttrain-auc:0.96055\tvalid-logloss:1.2e-05": Report(
        metrics={"train-auc": 0.96055, "valid-logloss": 1.2e-05}, step=0
    ),
    "[10]\ttrain-auc:0.95822+0.00596": Report(metrics={"train-auc": 0.95822}, step=10),
    # From logs that users of Lightning 2 published, and a script's own bar of tqdm, which counts epochs from 1.
    "Epoch 0: 100%|██| 25/25 [01:54<00:00,  0.22it/s, v_num=0, train_loss_step=1.310, val_loss=0.776]Epoch 0, global "
    "step 25: 'val_loss' reached 0.7": Report(
        metrics={"train_loss_step": 1.31, "val_loss": 0.776}, epoch=1, step=25, steps=25
    ),
    "Epoch 0: |     | 5/? [01:27<00:00,  0.06it/s, v_num=0, train_loss=14.90]": Report(
        metrics={"train_loss": 14.9}, epoch=1, step=5
    ),
    "Epoch 1/3: 100%|███| 4/4 [00:09<00:00, 14.19s/it, loss=1]": Report(
        metrics={"loss": 1}, epoch=1, epochs=3, step=4, steps=4
    ),
    # Hydra 1.3 sets this form for Python's logging.
    "[2026-11-26 17:08:01,123][__main__][INFO] - epoch=1 loss=0.5": Report(metrics={"loss": 0.5}, epoch=1),
    "{'train_loss': tensor(0.6931, device='cuda:0'), 'val_loss': tensor(0.5000)}": Report(
        metrics={"train_loss": 0.6931, "val_loss": 0.5}
    ),
    # Of the Trainer of transformers 4 and 5, which quotes numbers, from published logs: a step, behind a bar, the end.
    "{'loss': 0.514, 'grad_norm': 8.539, 'learning_rate': 2.8e-05, 'epoch': 1.31}": Report(
        metrics={"loss": 0.514, "grad_norm": 8.539, "learning_rate": 2.8e-05}, epoch=1.31
    ),
    "{'loss': '0.25', 'grad_norm': 'nan', 'epoch': '0.5'}": Report(metrics={"loss": 0.25}, epoch=0.5),
    " 84%|███▍ | 320/380 [1:27:33<14:12, 14.21s/it] {'loss': 0.06, 'epoch': 4.21}": Report(
        metrics={"loss": 0.06}, epoch=4.21, bar=320 / 380
    ),
    " 10%|█         | 3/30 [00:01<00:09,  2.94it/s]": Report(bar=0.1),
    "100%|██████████| 30/30 [00:10<00:00,  2.94it/s]": None,
    "Map: 50%|█████     | 500/1000 [00:10<00:00,  2.94 examples/s]": None,
    "{'train_runtime': 12.3, 'train_steps_per_second': 5.2, 'train_loss': 0.5, 'epoch': 3.0}": Report(
        metrics={"train_loss": 0.5}, epoch=3
    ),
    # Of scripts; the last is of PyTorch's MNIST example.
    "epoch 15/20: loss 0.05, accuracy 0.9": Report(
        metrics={"loss": 0.05, "accuracy": 0.9}, epoch=15, epochs=20
    ),
    "Epoch [1/10], Loss: 0.5": Report(metrics={"Loss": 0.5}, epoch=1, epochs=10),
    "Epoch 3 | train loss = 0.5 | val loss = 0.6": Report(
        metrics={"train loss": 0.5, "val loss": 0.6}, epoch=3
    ),
    "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300039": Report(
        metrics={"Loss": 2.300039}, epoch=1, step=640, steps=60000
    ),
    "Epoch [1/5], Step [100/600], Loss: 0.5": Report(
        metrics={"Loss": 0.5}, epoch=1, epochs=5, step=100, steps=600
    ),
    "Epoch 3: Val Acc: 10.00%, Test Acc: 9.5 % Loss: 1": Report(
        metrics={"Val Acc": 10, "Test Acc": 9.5, "Loss": 1}, epoch=3
    ),
    "epoch 3: loss:0,1 acc:0.5,auc:0.7": Report(metrics={"acc": 0.5, "auc": 0.7}, epoch=3),
    "2026-11-26 10:00:00 INFO 5 - x: 3": None,
    "Epoch 1: val_loss improved from 0.7 to 0.68616, saving model to x.keras": None,
    "[12:29:13] WARNING: /workspace/src/learner.cc:740": None,
    "[1/3] RUN pip install: 5": None,
    "{'config': {'epoch': 3}}": None,
    "the epoch of reason": None,
}


@pytest.mark.parametrize("text", LINES)
def test_a_printed_line_reports_its_place_and_its_metrics_or_nothing(text: str) -> None:
    assert reports(text) == list(filter(None, [LINES[text]]))


def test_each_version_of_a_line_that_is_written_again_reports() -> None:
    bars = "Epoch 1:  50%|█  | 2/4 [00:06<01:44, 14.1it/s, loss=2]\rEpoch 1: 100%|██| 4/4 [00:09<00:00, 14.1it/s, loss=1]"
    assert [(each.step, each.metrics["loss"]) for each in reports(bars)] == [(2, 2), (4, 1)]


DOCUMENTS: list[tuple[dict[str, Any], Report | None]] = [
    ({"loss": 0.5, "epoch": 3}, Report(metrics={"loss": 0.5}, epoch=3)),
    ({"event": "train_progress", "epoch": 3.0, "epochs": 20}, Report(epoch=3, epochs=20)),
    ({"event": "train_progress", "loss": 0.5}, Report(metrics={"loss": 0.5})),
    ({"global_step": 7, "auc": 1, "rank": 0, "note": "9"}, Report(metrics={"auc": 1}, step=7)),
    ({"event": "checkpoint_saved", "epoch": 3, "seconds": 2}, None),
    ({"rows": 3000}, None),
]


@pytest.mark.parametrize(("payload", "report"), DOCUMENTS)
def test_a_document_reports_any_part_of_a_place_and_metrics(
    payload: dict[str, Any], report: Report | None
) -> None:
    assert list(reports_in(payload, "")) == list(filter(None, [report]))


@given(st.text(alphabet="Epoch 0123456789/:|%[](){}'-=.,+e\t\r\b\x1bs>━it", max_size=400))
def test_no_line_is_too_odd(text: str) -> None:
    for report in reports(text):
        assert all(abs(value) < 1e300 and name for name, value in report.metrics.items())


def test_long_entries_give_few_metrics_and_long_lines_none() -> None:
    many = {f"metric {number}": 1.0 for number in range(10_000)}
    assert len(next(reports_in({"epoch": 1, **many}, "")).metrics) == METRICS_MAX
    assert reports("Epoch 1 " + "loss: 1 " * 1000) == []
