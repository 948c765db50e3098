"""The subjects of the console: a module each, with its pages, documents and actions."""

from collections.abc import Sequence

from trainmaster.web.pages import (
    attempt,
    compare,
    dead_letters,
    lately,
    overview,
    queue_page,
    runs,
    study,
)
from trainmaster.web.pages.models import model_pages
from trainmaster.web.pages.rules import rule_pages
from trainmaster.web.pages.run import run_page
from trainmaster.web.subject import ConsoleSubject

SUBJECTS: Sequence[ConsoleSubject] = (
    overview.SUBJECT,
    attempt.SUBJECT,
    lately.SUBJECT,
    runs.SUBJECT,
    compare.SUBJECT,  # before the page of a run, whose path matches too
    run_page.SUBJECT,
    model_pages.SUBJECT,
    rule_pages.SUBJECT,
    queue_page.SUBJECT,
    dead_letters.SUBJECT,
    study.SUBJECT,
)
