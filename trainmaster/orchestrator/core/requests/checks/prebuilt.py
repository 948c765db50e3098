"""Google's prebuilt training containers: until when each is patched, and until when it is available.

After the end of its availability, says the policy, a container can no longer be used: "services might block the
creation of new resources using these images, and the images are no longer available for download". So a request
for one is refused, unless the deployment's policy says `retired_images: warn`.

The list gives no first dates. A container that it does not name, a newer one for example, is not checked.

Sources, read 2026-11-22:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/pre-built-containers and
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/framework-support-policy
(before: https://cloud.google.com/vertex-ai/docs/training/pre-built-containers).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.values import Path
from trainmaster.orchestrator.core.policy.policy import RetiredImages
from trainmaster.orchestrator.core.requests.draft import Draft

READ_ON = date(2026, 11, 22)
WARNED_BEFORE = timedelta(days=90)
"""How long before its end a container is warned about."""


@dataclass(frozen=True, kw_only=True)
class Container:
    """Containers of one row of the list; `names` is an expression, without repository and tag."""

    names: str
    patched_until: date
    available_until: date


def _row(names: str, patched_until: str, available_until: str) -> Container:
    return Container(
        names=names,
        patched_until=date.fromisoformat(patched_until),
        available_until=date.fromisoformat(available_until),
    )


CONTAINERS: Sequence[Container] = (
    _row(r"tf-(cpu|gpu)\.2-17\.py310", "2025-07-11", "2026-07-11"),
    _row(r"tf-(cpu|gpu)\.2-16\.py310", "2025-06-28", "2026-06-28"),
    _row(r"tf-(cpu|gpu)\.2-15\.py310", "2024-11-14", "2025-11-14"),
    _row(r"tf-tpu\.2-15\.cp310", "2024-10-23", "2025-10-23"),
    _row(r"tf-(cpu|gpu)\.2-14\.py310", "2024-09-26", "2025-09-26"),
    _row(r"tf-(cpu|gpu)\.2-13\.py310", "2024-07-05", "2025-07-05"),
    _row(r"tf-(cpu|gpu)\.2-12\.py310|tf-tpu\.2-12", "2024-06-30", "2025-06-30"),
    _row(r"tf-(cpu|gpu)\.2-(8|9|11)(\.py310)?", "2023-11-15", "2024-11-15"),
    _row(r"tf-(cpu|gpu)\.(1-15|2-[1-7])", "2023-09-01", "2024-09-01"),
    _row(r"pytorch-(xla|gpu)\.2-4\.py310", "2025-07-24", "2026-07-24"),
    _row(r"pytorch-(xla|gpu)\.2-3\.py310", "2025-04-24", "2026-04-24"),
    _row(r"pytorch-xla\.2-2\.py310", "2025-01-30", "2026-10-23"),
    _row(r"pytorch-gpu\.2-2\.py310", "2025-01-30", "2026-01-30"),
    _row(r"pytorch-tpu\.2-2\.cp310", "2024-11-06", "2025-11-06"),
    _row(r"pytorch-(xla|gpu)\.2-1\.py310", "2024-10-04", "2025-10-04"),
    _row(r"pytorch-tpu\.2-1\.cp310", "2024-10-23", "2025-10-23"),
    _row(r"pytorch-(xla|gpu)\.2-0\.py310", "2024-03-15", "2025-03-15"),
    _row(r"pytorch-tpu\.2-0|pytorch-gpu\.1-1[23]\.py310", "2024-05-15", "2025-05-15"),
    _row(r"pytorch-gpu\.1-13", "2023-12-08", "2024-12-08"),
    _row(
        r"pytorch-gpu\.1-12|pytorch-(xla|gpu)\.1-(6|7|9|10|11)|pytorch-(cpu|gpu)\.1-4",
        "2023-09-01",
        "2024-09-01",
    ),
    _row(r"sklearn-(cpu|gpu)\.1-6|xgboost-(cpu|gpu)\.2-1", "2025-07-11", "2026-07-11"),
    _row(r"sklearn-(cpu|gpu)\.1-0|xgboost-(cpu|gpu)\.1-6", "2024-06-30", "2025-06-30"),
    _row(r"xgboost-cpu\.1-1", "2023-11-15", "2024-11-15"),
    _row(r"scikit-learn-cpu\.0-23", "2023-09-01", "2024-09-01"),
    _row(r"ray-(cpu|gpu)\.2-47\.py311", "2026-07-28", "2027-07-28"),
    _row(r"ray-(cpu|gpu)\.2-42\.py31[01]", "2026-03-01", "2027-03-01"),
    _row(r"ray-(cpu|gpu)\.2-33\.py310", "2025-09-16", "2026-09-16"),
)
_IMAGE = re.compile(r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^/:@]+)([:@].*)?")
_REPAIR = (
    "build your own image and name it "
    "(docs/how-to/ai-platform.md#packages-in-your-own-image shows one for Python packages)"
)


def container_of(image: str) -> Container | None:
    """The row of the list that has the image; None for any other image."""
    found = _IMAGE.fullmatch(image)
    rows = (row for row in CONTAINERS if found and re.fullmatch(row.names, found["name"]))
    return next(rows, None)


def prebuilt_faults(draft: Draft, today: date) -> list[Fault]:
    """Every prebuilt container of the request that is no longer available, unless the policy lets them pass."""
    return list(_ended(draft, today)) if _retired(draft) is RetiredImages.REFUSE else []


def prebuilt_warnings(draft: Draft, today: date) -> Iterator[Fault]:
    """Every prebuilt container that ends soon, and those that have ended where the policy lets them pass."""
    if _retired(draft) is RetiredImages.WARN:
        yield from _ended(draft, today)
    for path, image, container in _used(draft):
        if today <= container.available_until <= today + WARNED_BEFORE:
            yield Fault(
                at=path,
                problem=f"the prebuilt container is available only until {container.available_until} only, "
                f"and was patched until {container.patched_until}",
                value=image,
                repair=f"before that day, {_REPAIR}",
            )


def _ended(draft: Draft, today: date) -> Iterator[Fault]:
    for path, image, container in _used(draft):
        if container.available_until < today:
            yield Fault(
                at=path,
                problem=f"the prebuilt container has been unavailable since {container.available_until}, "
                f"according to Google's list of {READ_ON}",
                value=image,
                repair=_REPAIR,
            )


def _used(draft: Draft) -> Iterator[tuple[Path, str, Container]]:
    for path, image in draft.images.items():
        container = container_of(image)
        if container is not None:
            yield path, image, container


def _retired(draft: Draft) -> RetiredImages:
    return draft.policy.retired_images if draft.policy is not None else RetiredImages.REFUSE
