"""`trainmaster stack status` and `env` use the stack that the variable or `context use` chose."""

from pathlib import Path

import pytest

from tests.command import trainmaster
from tests.ready_stack import stack_on
from trainmaster.client.context import keep_choice


@pytest.mark.parametrize("verb", ["status", "env"])
def test_a_chosen_stack_is_meant_in_any_folder(tmp_path: Path, verb: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    with stack_on(tmp_path / "far") as far:
        (far / "user").mkdir()
        (far / "user/gcloud.env").write_text(f"# of {far}\n")
        variable = {"HOME": str(tmp_path), "TRAINMASTER_CONTEXT": f"local:{far}"}
        chosen = trainmaster("stack", verb, cwd=here, environment=variable)
        assert str(far) in chosen.out + chosen.err
        keep_choice(f"local:{far}", tmp_path / ".config/trainmaster")
        kept = {"HOME": str(tmp_path)}
        assert trainmaster("stack", verb, cwd=here, environment=kept) == chosen
        other = trainmaster("stack", verb, "--state", "other", cwd=here, environment=kept)
        assert (other.status, "'other'" in other.err) == (4, True)


def test_without_a_choice_or_with_one_in_the_cloud_it_is_the_stack_of_the_folder(tmp_path: Path) -> None:
    for choice in ({}, {"TRAINMASTER_CONTEXT": "some-project/us-central1"}):
        done = trainmaster("stack", "status", cwd=tmp_path, environment={"HOME": str(tmp_path), **choice})
        assert done.status == 4
        assert "No stack is running on '.trainmaster'." in done.err
