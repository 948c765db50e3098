"""Deploy Trainmaster to a project, or bring a deployment up to date.

    python -m trainmaster.deploy.up --project my-project --region europe-west4 [--check | --plan]

Everything is checked first; where something stands in the way, every reason is told and nothing is created.
Safe to repeat: what is deployed already stays, what has changed is changed.
"""

import argparse
import sys

from trainmaster.deploy.gcloud import GcloudFailed, gcloud
from trainmaster.deploy.names import Names, names_of
from trainmaster.deploy.preflight import Clearance, clearance_of
from trainmaster.deploy.stage import stage
from trainmaster.deploy.terraform_cli import TerraformFailed, init, run, variables, version_fault
from trainmaster.resources import ROOT

SOURCE = ROOT / "build" / "functions"
REFUSED = 2


def main(words: list[str] | None = None) -> int:
    """The exit status: 0 done, 1 something failed halfway (repeat it), 2 refused before anything was created."""
    asked = _parser().parse_args(words)
    names = names_of(asked.project, asked.region)
    old = version_fault()
    clearance = clearance_of(names)
    faults = [*([old] if old else []), *clearance.faults]
    if faults:
        for fault in faults:
            print(f"refused: {fault}", file=sys.stderr)
        print(f"Nothing was created in {names.project!r}.", file=sys.stderr)
        return REFUSED
    for line in _notes(clearance):
        print(line)
    if asked.check:
        print(f"Nothing stands in the way of deploying to {names.project} in {names.region}.")
        return 0
    try:
        _deploy(names, clearance, plan=asked.plan)
    except (GcloudFailed, TerraformFailed) as failed:
        print(f"{failed}\nWhat was made stays; the same command goes on from there.", file=sys.stderr)
        return 1
    return 0


def _deploy(names: Names, clearance: Clearance, *, plan: bool) -> None:
    stage(SOURCE)
    if not clearance.state_bucket_exists:
        make_state_bucket(names)
    init(names)
    if plan:
        run("plan", "-input=false", *variables(names, clearance))
    else:
        run("apply", "-input=false", "-auto-approve", *variables(names, clearance))


def make_state_bucket(names: Names) -> None:
    """Make the bucket that Terraform's state is kept in, with its history.

    Raises:
        GcloudFailed: the service refused it.
    """
    uri = f"gs://{names.state_bucket}"
    gcloud(
        "storage",
        "buckets",
        "create",
        uri,
        f"--project={names.project}",
        f"--location={names.region}",
        "--uniform-bucket-level-access",
        "--public-access-prevention",
    )
    gcloud("storage", "buckets", "update", uri, "--versioning")


def _notes(clearance: Clearance) -> list[str]:
    return [
        *(f"bucket {name} is there already and is kept" for name in clearance.kept_buckets.values()),
        *(
            f"the topic for {role} is somebody else's and is used as it is"
            for role in clearance.foreign_topics
        ),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainmaster.deploy.up",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--project", required=True, help="project id")
    parser.add_argument("--region", required=True, help="for example europe-west4")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="tell what stands in the way, and end")
    only.add_argument(
        "--plan", action="store_true", help="show what would be changed, and change only the state bucket"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
