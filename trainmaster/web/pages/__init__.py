"""The subjects of the console: a module each, with its pages, documents and actions."""

from collections.abc import Sequence

from trainmaster.web.pages import (
    attempt,
    compare,
    dead_letters,
    lately,
    overview,
    queue,
    runs,
    study,
)
from trainmaster.web.pages.models import page as models
from trainmaster.web.pages.rules import page as rules
from trainmaster.web.pages.run import page as run
from trainmaster.web.subject import Subject

SUBJECTS: Sequence[Subject] = (
    overview.SUBJECT,
    attempt.SUBJECT,
    lately.SUBJECT,
    runs.SUBJECT,
    compare.SUBJECT,  # before the page of a run, whose path matches too
    run.SUBJECT,
    models.SUBJECT,
    rules.SUBJECT,
    queue.SUBJECT,
    dead_letters.SUBJECT,
    study.SUBJECT,
)
