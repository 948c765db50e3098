"""The subjects of the console: a module each, with its pages, documents and actions."""

from collections.abc import Sequence

from trainmaster.web.pages import (
    attempt,
    compare,
    costs_page,
    dead_letters,
    models_page,
    notices_page,
    overview,
    queue_page,
    rules_page,
    runs,
    study,
)
from trainmaster.web.pages.run import run_page
from trainmaster.web.subject import ConsoleSubject

SUBJECTS: Sequence[ConsoleSubject] = (
    overview.SUBJECT,
    attempt.SUBJECT,
    runs.SUBJECT,
    compare.SUBJECT,  # before the page of a run, whose path matches too
    run_page.SUBJECT,
    models_page.SUBJECT,
    rules_page.SUBJECT,
    queue_page.SUBJECT,
    costs_page.SUBJECT,
    notices_page.SUBJECT,
    dead_letters.SUBJECT,
    study.SUBJECT,
)
