"""`make demo-tuning`: one request becomes six trials, two at a time, and the best one's model."""

from trainmaster.cli.demo.stage import Demo
from trainmaster.cli.demo.tuning.report import report
from trainmaster.resources import ROOT

run = Demo(
    request=ROOT / "examples" / "demo_tuning.yaml",
    data=("--dataset=horses_or_humans", "--examples=240"),
    report=report,
).run
