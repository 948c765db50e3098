"""What the checker found in the repository or a part of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.repo.wording.names import replaced_names
from tests.repo.wording.phrases import findings
from tests.repo.wording.prose import WORD, passages, repository

LIMIT = 0.3
"""Phrases per 1,000 words of prose in the whole repository. It only falls."""


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """One finding at a line of a file."""

    path: str
    line: int
    text: str

    @property
    def folder(self) -> str:
        return _folder(self.path)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The findings below some paths. `names` are lines about replaced names; `words_in` counts words by folder."""

    phrases: tuple[Phrase, ...]
    names: tuple[str, ...]
    words_in: Counter[str]

    @property
    def words(self) -> int:
        return self.words_in.total()

    @property
    def rate(self) -> float:
        """Phrases per 1,000 words."""
        return 1000 * len(self.phrases) / max(self.words, 1)

    def lines(self) -> Iterator[str]:
        """Each finding on one line, in the order of the files."""
        for phrase in self.phrases:
            yield f"{phrase.path}:{phrase.line}: {phrase.text}"

    def rates(self) -> Iterator[str]:
        """The rate of each folder that has findings, highest number of findings first."""
        for folder, number in Counter(phrase.folder for phrase in self.phrases).most_common():
            words = self.words_in[folder]
            yield f"{1000 * number / words:7.2f} per 1,000  {number:5} in {words:6} words  {folder}"


def read(*paths: str) -> Report:
    """The report on the files below the paths, or on the whole repository."""
    return report_on(repository(*paths))


def report_on(files: Iterable[tuple[str, str]]) -> Report:
    """The report on files, each a path and its content."""
    phrases: list[Phrase] = []
    names: list[str] = []
    words_in: Counter[str] = Counter()
    for path, content in files:
        for passage in passages(path, content):
            words_in[_folder(path)] += len(WORD.findall(passage.text))
            phrases += (
                Phrase(
                    path=path, line=passage.line_at(found.offset), text=f"{found.phrase!r} → {found.repair}"
                )
                for found in findings(passage.text)
            )
        if path.endswith(".py"):
            names += (
                f"{path}:{line}: the name {name!r} was replaced: {new}"
                for line, name, new in replaced_names(content)
            )
    return Report(phrases=tuple(phrases), names=tuple(names), words_in=words_in)


def _folder(path: str) -> str:
    """At most the first three folders of a path; a file of the root as it is."""
    return "/".join(path.split("/")[:-1][:3]) or path
