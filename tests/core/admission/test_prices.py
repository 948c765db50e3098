"""The cost of a job: by the hour, at most, and unknown where a price is."""

import re
from decimal import Decimal
from typing import Any

import pytest
import yaml

from tests.core.admission_cases import (
    CHIEF,
    GCLOUD,
    PRICES,
    ROW,
    TABLE,
    candidates,
    document,
    faults,
    policy,
    shipped_prices,
    sound,
)
from tests.core.roles import TUNING
from tests.core.shipped import ROOT, policy_document, schema
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.cost import currency_problem, estimate, estimate_of
from trainmaster.orchestrator.core.admission.prices import prices_from, series_of
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.policy.admission import Caps

PRICES_TEXT = (ROOT / "functions" / "prices.yaml").read_text()
REGIONS = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "regions.yaml").read_text())["training"]
HOUR = {"timeout_s": 3600}
T4 = {"type": "NVIDIA_TESLA_T4", "count": 2}
STUDY = {**TUNING, "max_trials": 10, "parallel_trials": 4}


def cost(**changes: Any) -> tuple[Decimal | None, Decimal | None]:
    (candidate,) = candidates(**changes)
    found = estimate(candidate.spec, candidate.region, PRICES)
    return found.per_hour, found.at_most


@pytest.mark.parametrize(
    ("changes", "per_hour"),
    [
        ({}, "1.8"),  # the machine 0.2 and its disk 1, each with half as much as a fee
        ({"cluster": {"chief": {**CHIEF, "disk": {"size_gb": 200}}}}, "3.3"),
        ({"cluster": {"chief": {**CHIEF, "accelerator": T4}}}, "3.0"),
        ({"cluster": {"chief": CHIEF, "workers": {**CHIEF, "machine": "n1-standard-8", "count": 3}}}, "8.1"),
        ({"persistent_resource": "pool"}, "0"),  # its machines are billed without the run
    ],
)
def test_an_hour_costs_the_sum_of_all_replicas(changes: dict[str, Any], per_hour: str) -> None:
    assert cost(**changes, scheduling=HOUR) == (Decimal(per_hour), Decimal(per_hour))


def test_accelerators_that_a_machines_price_has_in_it_count_once() -> None:
    chief = {"machine": "a2-highgpu-1g", "accelerator": {"type": "NVIDIA_TESLA_A100", "count": 1}}
    assert cost(cluster={"chief": chief}, scheduling=HOUR) == (Decimal("5.5"), Decimal("5.5"))


def test_spot_machines_have_their_own_price_and_where_none_is_known_the_standard_one() -> None:
    spot = {**HOUR, "spot": True}
    assert cost(scheduling=spot)[0] == Decimal("1.6")
    assert cost(cluster={"chief": {"machine": "n1-standard-8"}}, scheduling=spot)[0] == Decimal("2.1")


def test_a_job_of_an_old_record_without_a_timeout_may_run_for_seven_days() -> None:
    assert cost() == (Decimal("1.8"), Decimal("1.8") * 24 * 7)


@pytest.mark.parametrize(
    ("changes", "timeout_s"),
    [({}, 24 * 3600), ({"default_timeout_s": 7200}, 7200), ({"max_timeout_s": 3600}, 3600)],
)
@pytest.mark.parametrize("written", [document(), GCLOUD], ids=["ours", "gcloud"])
def test_a_run_without_a_timeout_ends_after_a_day_or_when_the_policy_says(
    written: dict[str, Any], changes: dict[str, Any], timeout_s: int
) -> None:
    found = sound(written, under=policy({"estimates": True}, **changes))
    assert found.document["scheduling"] == {"timeout_s": timeout_s}
    assert found.spec.scheduling.timeout_s == timeout_s
    assert present(found.estimate).at_most == Decimal("1.8") * timeout_s / 3600


def test_every_trial_of_a_tuning_counts_and_as_many_at_once_as_may_run() -> None:
    assert cost(tuning=STUDY, scheduling=HOUR) == (Decimal("7.2"), Decimal("18.0"))


def test_a_price_that_is_not_in_the_table_is_unknown_and_named() -> None:
    chief = {
        "machine": "g2-standard-4",
        "accelerator": {"type": "NVIDIA_L4", "count": 1},
        "disk": {"type": "pd-standard"},
    }
    (candidate,) = candidates(cluster={"chief": chief})
    found = estimate(candidate.spec, candidate.region, PRICES)
    assert (found.per_hour, found.at_most) == (None, None)
    assert found.unknown == (
        "NVIDIA_L4 in us-central1",
        "g2-standard-4 in us-central1",
        "pd-standard in us-central1",
    )
    elsewhere = estimate(candidate.spec, "europe-west9", PRICES)
    assert "g2-standard-4 in europe-west9" in elsewhere.unknown


def test_the_dearest_candidate_counts_and_one_unknown_leaves_that_of_the_others() -> None:
    dear = {"cluster": {"chief": {"machine": "n1-standard-8"}}}
    found = estimate_of(candidates(scheduling=HOUR, fallbacks=[dear, {"scheduling": {"spot": True}}]), PRICES)
    assert (found.per_hour, found.at_most) == (Decimal("2.1"), Decimal("2.1"))
    unknown = estimate_of(candidates(fallbacks=[dear, {"region": "europe-west4"}]), PRICES)
    seven_days = Decimal("2.1") * 24 * 7
    assert (unknown.per_hour, unknown.at_most) == (Decimal("2.1"), seven_days)
    assert unknown.unknown == ("n1-standard-4 in europe-west4", "pd-ssd in europe-west4")
    none = estimate_of(candidates(region="europe-west4", fallbacks=[{"scheduling": {"spot": True}}]), PRICES)
    assert (none.per_hour, none.at_most) == (None, None)


def test_a_retry_on_a_machine_without_a_price_counts_as_the_job_before_it() -> None:
    scheduling = {"timeout_s": 3600, "retries": 2, "retry_on": ["out_of_memory"]}
    (once,), (retried,) = candidates(scheduling={"timeout_s": 3600}), candidates(scheduling=scheduling)
    found = estimate(retried.spec, retried.region, PRICES, policy().machines)
    assert found.unknown == ("n1-highmem-4 in us-central1", "n1-highmem-8 in us-central1")
    assert found.at_most == 3 * present(estimate(once.spec, once.region, PRICES).at_most)


def test_of_two_rows_that_price_the_same_the_later_holds() -> None:
    again = {**TABLE, "rows": [*TABLE["rows"], {**ROW, "machines": {"n1-standard-4": 7}}]}
    (candidate,) = candidates(scheduling=HOUR)
    assert estimate(candidate.spec, candidate.region, prices_from(again)).per_hour == Decimal("8.5")


def test_the_shipped_table_is_as_its_schema_says_and_agrees_with_vertex_ais_own_price() -> None:
    shipped = shipped_prices()
    assert schema_faults(schema("prices.v1"), shipped) == []
    derived = prices_from({**shipped, "rows": shipped["rows"][:-1]}).table("us-central1")
    published = prices_from(shipped).table("us-central1")
    assert derived.machine("n1-standard-4") == published.machine("n1-standard-4") == Decimal("0.21849885")
    e2 = derived.machine("e2-standard-4"), published.machine("e2-standard-4")
    assert None not in e2
    assert abs(e2[0] - e2[1]) < Decimal("1e-7")  # type: ignore[operator]  # both are known


def test_the_shipped_table_prices_all_that_the_policy_has_but_what_it_lists_as_unknown() -> None:
    prices, unknown = prices_from(shipped_prices()), re.findall(r"^#   (\S+)", PRICES_TEXT, re.MULTILINE)
    for row in policy_document()["machines"]:
        for name in row["types"]:
            assert (prices.table("us-central1").machine(name) is None) == (name in unknown), name
    for region in REGIONS:
        for spot in (False, True):
            table = prices.table(region, spot=spot)
            for name in ("e2-standard-4", "n1-highmem-8", "n2-highcpu-16", "g2-standard-48"):
                assert (table.machine(name) or 0) > 0, (region, spot, name)


def test_no_spot_machine_of_the_shipped_table_costs_more_than_the_standard_one() -> None:
    prices = prices_from(shipped_prices())
    for region in REGIONS:
        standard, spot = prices.table(region), prices.table(region, spot=True)
        for name, price in (*spot.machines.items(), *spot.accelerators.items()):
            assert price <= {**standard.machines, **standard.accelerators}[name], (region, name)


def test_the_shipped_table_names_nothing_else() -> None:
    types = {name for row in policy_document()["machines"] for name in row["types"]}
    known = types | {series_of(name)[0] for name in types}
    accelerators = {name for row in policy_document()["machines"] for name in row.get("accelerators", {})}
    for row in shipped_prices()["rows"]:
        assert row.get("machines", {}).keys() <= known
        assert row.get("accelerators", {}).keys() <= accelerators


def test_a_series_prices_its_machines_by_their_number_and_a_machine_of_its_own_price_wins() -> None:
    row = {**ROW, "with_accelerators": True, "machines": {"a2-highgpu-*g": 2, "a2-highgpu-8g": 15}}
    table = prices_from({**TABLE, "rows": [row]}).table("us-central1")
    found = {name: table.machine(name) for name in ("a2-highgpu-1g", "a2-highgpu-4g", "a2-highgpu-8g", "a2")}
    assert found == {"a2-highgpu-1g": 2, "a2-highgpu-4g": 8, "a2-highgpu-8g": 15, "a2": None}
    assert table.is_whole("a2-highgpu-2g")
    assert not table.is_whole("n1-standard-4")


def test_a_row_of_several_regions_has_one_price_for_all_or_a_column_for_each() -> None:
    machines = {"n1-standard-*": "0.25 ~ 0.5", "n1-highmem-2": 7}
    row = {**ROW, "regions": ["us-east1", "us-east4", "asia-east1"], "machines": machines}
    prices = prices_from({**TABLE, "rows": [row]})
    found = [prices.table(region).machine("n1-standard-8") for region in row["regions"]]
    assert found == [2, None, 4]
    assert prices.table("us-east4").machine("n1-highmem-2") == 7
    short = {**row, "machines": {"n1-standard-*": "0.25 0.5"}}
    with pytest.raises(
        ValueError, match=r"rows\[0\].machines\['n1-standard-\*'\] has 2 prices for 3 regions"
    ):
        prices_from({**TABLE, "rows": [short]})
    for wrong in ("0.25 x 0.5", "", "-1"):
        table = {**TABLE, "rows": [{**row, "machines": {"n1-standard-*": wrong}}]}
        assert schema_faults(schema("prices.v1"), table) != []


def test_the_fee_of_a_spot_machine_is_the_fee_of_the_standard_one() -> None:
    rows = [
        {**ROW, "fee": 0.5, "machines": {"n1-standard-*": 1}, "accelerators": {"NVIDIA_TESLA_T4": 1}},
        {**ROW, "fee": 0.5, "spot": True, "machines": {"n1-standard-*": 0.25, "c2-standard-*": 0.25}},
    ]
    prices = prices_from({**TABLE, "rows": rows})
    spot = prices.table("us-central1", spot=True)
    assert (spot.machine("n1-standard-2"), spot.machine("c2-standard-2")) == (Decimal("1.5"), Decimal("0.75"))
    assert prices.table("us-central1").machine("n1-standard-2") == 3


@pytest.mark.parametrize(
    ("machine", "topology", "replicas", "chips"),
    [
        ("ct5lp-hightpu-1t", "1x1", 1, 1),
        ("ct5lp-hightpu-4t", "4x4", 1, 16),
        ("ct5lp-hightpu-4t", "2x4", 2, 8),
        ("ct5lp-hightpu-8t", "2x4", 1, 8),
    ],
)
def test_tpus_are_priced_by_their_chips(machine: str, topology: str, replicas: int, chips: int) -> None:
    row = {**ROW, "machines": {"ct5lp-hightpu-*t": 2}, "disks": {"pd-ssd": 0}}
    chief = {"machine": machine, "tpu_topology": topology}
    (candidate,) = candidates(cluster={"chief": {**chief, "count": replicas}})
    found = estimate(candidate.spec, "us-central1", prices_from({**TABLE, "rows": [row]}))
    assert found.per_hour == 2 * chips


CAPPED = {"caps": {"currency": "USD", "cost_per_run": 10, "cost_per_day": 12.5}}


def test_a_run_that_may_cost_more_than_the_cap_is_refused_where_it_can_be_mended() -> None:
    under = policy(CAPPED)
    without_timeout = faults(document(), under=under)
    assert list(without_timeout) == ["$.cluster.chief"]
    assert "found 43.20 USD, at 1.80 USD an hour" in without_timeout["$.cluster.chief"]
    assert "at most 10.00 USD, by the policy's cost_per_run" in without_timeout["$.cluster.chief"]
    assert "set a shorter scheduling.timeout_s" in without_timeout["$.cluster.chief"]
    workers = {**CHIEF, "count": 9}
    many = faults(document(cluster={"chief": CHIEF, "workers": workers}, scheduling=HOUR), under=under)
    assert list(many) == ["$.cluster.workers"]
    assert "fewer replicas" in many["$.cluster.workers"]
    assert sound(document(scheduling=HOUR), under=under).warnings == ()


def test_a_fallback_that_costs_too_much_is_refused_at_its_place() -> None:
    dear = {"cluster": {"chief": {"disk": {"size_gb": 10_000}}}}
    found = faults(
        document(scheduling=HOUR, fallbacks=[{"scheduling": {"spot": True}}, dear]), under=policy(CAPPED)
    )
    assert list(found) == ["$.fallbacks[1].cluster.chief"]


def test_a_cost_that_is_unknown_is_a_warning_and_where_the_policy_says_so_a_fault() -> None:
    unknown = document(cluster={"chief": {"machine": "e2-standard-4"}})
    found = sound(unknown, under=policy(CAPPED))
    (warning,) = found.warnings
    assert (warning.path, warning.problem) == (
        "$.cluster",
        "its cost is unknown: no price for e2-standard-4 in us-central1",
    )
    assert present(found.estimate).at_most is None
    refuses = policy({"caps": {**CAPPED["caps"], "unknown_prices": "refuse"}})
    assert "prices.yaml" in faults(unknown, under=refuses)["$.cluster"]


def test_an_estimate_is_made_where_the_policy_asks_for_one_and_prices_are_read_only_then() -> None:
    assert sound(document()).estimate is None
    found = sound(document(scheduling=HOUR), under=policy({"estimates": True}))
    assert (present(found.estimate).at_most, found.warnings) == (Decimal("1.8"), ())


def test_caps_in_another_currency_than_the_prices_are_a_problem_that_names_both() -> None:
    assert currency_problem(Caps(currency="EUR"), PRICES) is None
    problem = present(currency_problem(Caps(currency="EUR", cost_per_run=Decimal(1)), PRICES))
    assert "USD" in problem
    assert "EUR" in problem


@pytest.mark.parametrize(
    ("machine", "disk_type"), [("a3-ultragpu-8g", "hyperdisk-balanced"), ("n4-standard-4", "pd-ssd")]
)
def test_a_disk_without_a_type_counts_as_the_one_that_the_machine_gets(machine: str, disk_type: str) -> None:
    (candidate,) = candidates(
        cluster={"chief": {"machine": machine, "disk": {"size_gb": 200}}}, region="europe-west4"
    )
    unknown = estimate_of([candidate], PRICES).unknown
    assert f"{disk_type} in europe-west4" in unknown
