"""The command line.

python -m trainmaster.cli demo
python -m trainmaster.cli demo-tuning
python -m trainmaster.cli demo-retrain
python -m trainmaster.cli replay --list
python -m trainmaster.cli doctor --project my-project --region us-central1
python -m trainmaster.cli study projects/my-project/locations/us-central1/hyperparameterTuningJobs/123
"""

import argparse
import sys
from pathlib import Path

from trainmaster.resources import DEPLOY


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the verb that `arguments` name; argparse exits with 2 on unusable ones."""
    options = _parser().parse_args(arguments)
    match options.verb:
        case "demo":
            from trainmaster.cli.demo.training import DEMO as TRAINING

            return TRAINING.run(options.state)
        case "demo-tuning":
            from trainmaster.cli.demo.tuning import DEMO as TUNING

            return TUNING.run(options.state)
        case "demo-retrain":
            from trainmaster.cli.demo.retrain import run

            return run(options.state)
        case "replay":
            from trainmaster.cli.dead_letters import replay

            return replay(options)
        case "doctor":
            from trainmaster.deploy.doctor.command import doctor

            return doctor(options)
        case _:
            from trainmaster.cli.study.command import write

            return write(options.job_name, options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainmaster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    _demo(verbs, "demo", "watch a dropped request become a trained model, on this machine")
    _demo(verbs, "demo-tuning", "watch six trials search for the best model, two at a time, on this machine")
    _demo(verbs, "demo-retrain", "watch new data train the next champion, and bad data not, on this machine")
    study = verbs.add_parser("study", help="draw a tuning job: its learning curves, parameters and results")
    study.add_argument("job_name", help="projects/…/locations/…/hyperparameterTuningJobs/…")
    study.add_argument(
        "--out", type=Path, default=Path(), help="folder of study.html and study.png (default: %(default)s)"
    )
    _replay(verbs)
    _doctor(verbs)
    return parser


def _doctor(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "doctor", help="try every part of a deployment, and name what stands in its way"
    )
    parser.add_argument("--state", type=Path, metavar="DIR", help="the running local stack on this folder")
    parser.add_argument("--project", metavar="ID", help="the project in Google Cloud")
    parser.add_argument("--region", help="the deployment's region")
    parser.add_argument(
        "--topology", type=Path, default=DEPLOY / "topology.yaml",
        metavar="FILE", help="what was deployed (default: trainmaster/deploy/topology.yaml)",
    )  # fmt: skip
    parser.add_argument(
        "--request", type=Path, metavar="FILE", help="a request to try, instead of a small one"
    )
    parser.add_argument(
        "--wait-s", type=float, default=60.0, metavar="S",
        help="how long to wait for the functions' answers (default: %(default)g)",
    )  # fmt: skip


def _replay(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "replay", help="put events that kept failing back where they failed, and say what became of them"
    )
    parser.add_argument(
        "id", nargs="*", metavar="ID", help="dead letters, as --list names them (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="only show the dead letters and why each failed")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--state", type=Path, metavar="DIR", help="the running local stack on this folder")
    where.add_argument(
        "--project", metavar="ID", help="this project in Google Cloud (default: the environment's)"
    )
    parser.add_argument(
        "--subscription", default="trainmaster-dead-letters", metavar="ID",
        help="the subscription that keeps them (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--wait-s", type=float, default=30.0, metavar="S",
        help="how long to wait for what becomes of them (default: %(default)g)",
    )  # fmt: skip


def _demo(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, said: str) -> None:
    verbs.add_parser(name, help=said).add_argument(
        "--state",
        type=Path,
        default=Path(".trainmaster") / name,
        help="folder of the demo's local stack, emptied at the start (default: %(default)s)",
    )


if __name__ == "__main__":
    sys.exit(main())
