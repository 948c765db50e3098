"""Two teams' jobs, each trying to reach what belongs to the other, and to the service."""

from collections.abc import Iterator

import pytest

from tests.stack.services import deployed_grants
from trainstack.http import in_thread

from .conftest import JOBS, PROJECT, Served, denied, email, running
from .test_other_refusals import job

TEAMS = ("vision", "speech")
INBOX, LEDGER, MODELS, DATA, CHAMPIONS = (
    f"{PROJECT}-{role}" for role in ("inbox", "ledger", "models", "data", "champions")
)
THEIRS = {
    MODELS: ("{team}/m/run/model/weights", "{team}/m/run/model/metrics.json"),
    DATA: ("{team}/train.csv",),
    INBOX: ("requests/{team}/a.yaml", "rules/{team}/a.yaml"),
    CHAMPIONS: ("{team}/m/run/model/weights",),
    LEDGER: ("champions/{team}/m.json", "runs/run.json"),
}
"""Objects of a team, by bucket."""
each_way = pytest.mark.parametrize(("team", "other"), [TEAMS, TEAMS[::-1]])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    grants = deployed_grants(PROJECT, TEAMS)
    with in_thread(lambda: running(tmp_path_factory.mktemp("teams"), grants)) as services:
        for bucket, names in THEIRS.items():
            made = services.call("POST", "storage", f"/storage/v1/b?project={PROJECT}", json={"name": bucket})
            made.raise_for_status()
            for name in {each.format(team=team) for each in names for team in TEAMS}:
                services.upload(bucket, name).raise_for_status()
        for team in TEAMS:
            services.upload(MODELS, team).raise_for_status()  # the marker, as the stack creates it
        yield services


def attempts(served: Served, account: str, bucket: str, name: str, own: str) -> Iterator[str]:
    """The refusals that the account gets when it reads, lists, patches, removes, copies, composes or replaces the object, or adds one."""
    path = f"/storage/v1/b/{bucket}/o/{name.replace('/', '%2F')}"
    mine = f"b/{MODELS}/o/{own.replace('/', '%2F')}"
    folder = name.rpartition("/")[0]
    for verb, to in (
        ("GET", path),
        ("GET", f"{path}?alt=media"),
        *((verb, f"/{bucket}/{name}") for verb in ("GET", "PUT", "DELETE")),
        ("GET", f"/{bucket}?prefix={folder}/"),
        ("POST", f"/{bucket}/{name}?uploads"),
        ("GET", f"/storage/v1/b/{bucket}/o?prefix={folder}/"),
        ("GET", f"/storage/v1/b/{bucket}/o"),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/rewriteTo/{mine}"),
        ("POST", f"/storage/v1/{mine}/rewriteTo/{path.removeprefix('/storage/v1/')}"),
        ("POST", f"{path}/compose"),
    ):
        body = {"json": {"sourceObjects": [{"name": name}]}} if verb in ("POST", "PATCH") else {}
        yield denied(served.call(verb, "storage", to, account, **body))
    yield denied(served.upload(bucket, name, account))
    yield denied(served.upload(bucket, f"{folder}/new", account))


@each_way
@pytest.mark.parametrize("bucket", THEIRS)
def test_a_teams_job_is_refused_everything_of_the_other_team(
    served: Served, team: str, other: str, bucket: str
) -> None:
    account, own = f"tm-trainer-{team}", f"{team}/m/run/model/weights"
    for name in THEIRS[bucket]:
        refusals = attempts(served, account, bucket, name.format(team=other), own)
        assert all(f"{email(account)} does not have storage.objects." in each for each in refusals)


@each_way
@pytest.mark.parametrize("bucket", [INBOX, CHAMPIONS, LEDGER])
def test_a_teams_job_cannot_write_drops_champions_or_records_of_its_own_team_either(
    served: Served, team: str, other: str, bucket: str
) -> None:
    for name in THEIRS[bucket]:
        answer = served.upload(bucket, name.format(team=team), f"tm-trainer-{team}")
        assert "storage.objects.create" in denied(answer)


@each_way
def test_only_the_teams_evaluation_writes_the_numbers_that_decide(
    served: Served, team: str, other: str
) -> None:
    numbers, account = f"_evaluations/{team}/m/run/metrics.json", f"tm-eval-{team}"
    for stranger in ("tm-trainer", f"tm-trainer-{team}", f"tm-trainer-{other}", f"tm-eval-{other}"):
        assert "storage.objects.create" in denied(served.upload(CHAMPIONS, numbers, stranger))
    assert served.upload(CHAMPIONS, numbers, account).status_code == 200
    for stranger in (f"tm-trainer-{team}", f"tm-trainer-{other}", f"tm-eval-{other}"):
        path = f"/storage/v1/b/{CHAMPIONS}/o/{numbers.replace('/', '%2F')}"
        assert "storage.objects.delete" in denied(served.call("DELETE", "storage", path, stranger))
    assert served.read(CHAMPIONS, f"{team}/m/run/model/weights", account).status_code == 200
    assert "storage.objects.create" in denied(
        served.upload(CHAMPIONS, f"{team}/m/run/model/weights", account)
    )
    theirs = [(CHAMPIONS, f"{other}/m/run/model/weights"), (MODELS, f"{team}/m/run/model/weights")]
    for bucket, name in (*theirs, (DATA, f"{other}/train.csv"), (LEDGER, f"champions/{team}/m.json")):
        assert "storage.objects.get" in denied(served.read(bucket, name, account))


@each_way
def test_a_teams_job_uses_its_own_folders(served: Served, team: str, other: str) -> None:
    account = f"tm-trainer-{team}"
    assert served.upload(MODELS, f"{team}/m/run/model/weights", account).status_code == 200
    assert served.read(MODELS, f"{team}/m/run/model/weights", account).status_code == 200
    assert served.read(MODELS, f"{team}/none", account).status_code == 404
    assert served.read(DATA, f"{team}/train.csv", account).status_code == 200
    listed = served.call("GET", "storage", f"/storage/v1/b/{MODELS}/o?prefix={team}/", account)
    assert listed.status_code == 200
    assert all(each["name"].startswith(f"{team}/") for each in listed.json()["items"])


@each_way
def test_a_teams_job_may_read_its_marker_where_tensorflow_looks_for_a_parent(
    served: Served, team: str, other: str
) -> None:
    account = f"tm-trainer-{team}"
    assert served.read(MODELS, team, account).status_code == 200
    assert served.call("GET", "storage", f"/storage/v1/b/{MODELS}", account).status_code == 200
    assert "storage.objects.get" in denied(served.read(MODELS, other, account))
    assert "storage.objects.create" in denied(served.upload(MODELS, team, account))
    listed = served.call("GET", "storage", f"/storage/v1/b/{MODELS}/o?prefix={team}", account)
    assert "storage.objects.list" in denied(listed)


@each_way
def test_a_teams_job_can_start_no_job_and_the_functions_one_of_each_team(
    served: Served, team: str, other: str
) -> None:
    body, scoring = job(email(f"tm-trainer-{team}")), job(email(f"tm-eval-{team}"))
    for submitter in ("tm-on-job-log", "tm-on-tick"):
        assert served.call("POST", "vertex", f"/v1/{JOBS}", submitter, json=scoring).status_code == 200
    refused = served.call("POST", "vertex", f"/v1/{JOBS}", "tm-on-request-uploaded", json=scoring)
    assert "permission to act as" in refused.json()["error"]["message"]
    assert denied(served.call("POST", "vertex", f"/v1/{JOBS}", f"tm-trainer-{team}", json=body))
    assert (
        served.call("POST", "vertex", f"/v1/{JOBS}", "tm-on-request-uploaded", json=body).status_code == 200
    )
