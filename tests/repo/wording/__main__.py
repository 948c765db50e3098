"""The checker of wording: `python -m tests.repo.wording [PATH...]`.

Without a path it prints the rate of each folder, and exits with 1 if the whole repository is above the limit or a
replaced name is back. With paths, files or folders from the repository's root, it lists each finding below them.
"""

import sys

from tests.repo.wording.report import LIMIT, Report, read


def main(paths: list[str]) -> int:
    report = read(*(path.removeprefix("./").rstrip("/") for path in paths))
    lines = [*(report.lines() if paths else report.rates()), *report.names]
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, _summary(report)]))
    return 1 if report.names or report.rate > LIMIT else 0


def _summary(report: Report) -> str:
    return (
        f"{len(report.phrases)} phrases in {report.words} words: {report.rate:.2f} per 1,000; at most {LIMIT} are "
        f"allowed in the whole repository. List those of a folder: python -m tests.repo.wording FOLDER"
    )


sys.exit(main(sys.argv[1:]))
