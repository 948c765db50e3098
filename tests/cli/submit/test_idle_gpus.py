"""A warning of GPUs that a script would leave idle."""

from pathlib import Path
from typing import Any

import pytest

from tests.narrowing import present
from trainmaster.cli.submit.idle_gpus import idle_gpus
from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.source import NO_FILE, RequestSource
from trainmaster.client.submission.terms import terms_with_policy

TERMS = terms_with_policy(context_in_cloud("my-project", "us-central1"))


@pytest.mark.parametrize(
    ("source", "options", "warned"),
    [
        ("print('trains')\n", {"gpu": "A100:8"}, True),
        ("print('trains')\n", {"gpu": "A100:1"}, False),
        ("print('trains')\n", {}, False),
        ("model = nn.DataParallel(model)\n", {"gpu": "A100:8"}, False),
        ("import model\n", {"gpu": "A100:8"}, False),
    ],
)
def test_one_process_on_several_gpus_is_warned_of(
    source: str, options: dict[str, Any], warned: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(source)
    if "import model" in source:
        (tmp_path / "model.py").write_text("strategy = tf.distribute.MirroredStrategy()\n")
    edits = Edits(script=tmp_path / "train.py", **options)
    found = examination_of(RequestSource(file=NO_FILE, content=b""), TERMS, edits)
    fault = idle_gpus(present(found.request), present(found.packed))
    assert (fault is not None) == warned
    if fault is not None:
        assert (fault.path, "--launcher torchrun" in fault.repair) == ("$.cluster.chief", True)
        assert fault.problem.startswith("8 GPUs, one process: train.py names nothing that uses more")
