"""The price table as it is made of two catalogues, on an excerpt of each."""

import csv
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.shipped import ROOT, schema
from tools.prices import HEADER, UnusablePrices, rows_of, text_of
from trainmaster.orchestrator.core.admission.prices import Prices, prices_from
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.resources import DEPLOY

REGIONS = ["us-central1", "us-east4", "asia-east1"]
VMS = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
n1-standard-4,4.0,15.0,,,,us-central1,us-central1-a,0.19,0.067
,,,T4,1,,us-central1,us-central1-a,0.35,0.14
,,,T4,2,,us-east4,us-east4-a,0.74,0.2246
,,,T4,1,,us-east4,us-east4-c,0.36,
,,,A100,1,,us-central1,us-central1-a,1.8462,1.5712
,,,tpu-v2-8,1,,us-central1,us-central1-b,4.5,1.35
,,,tpu-v2-32,1,,us-central1,us-central1-a,24.0,6.12
,,,tpu-v4-8,1,,us-central1,us-central1-b,12.88,3.686
,,,tpu-v6e-16,1,,asia-east1,asia-east1-c,700.0,700.0
,,,tpu-v6e-16,1,,us-east4,us-east4-a,43.2,13.73328
,,,T4,1,,elsewhere1,elsewhere1-a,9,9
"""


def cost(**prices: tuple[float, float]) -> dict[str, Any]:
    costs = {
        region.replace("_", "-"): {"hour": hour, "hour_spot": spot} for region, (hour, spot) in prices.items()
    }
    return {"cost": costs}


PRICING = {
    "about": {"timestamp": 1785391997},
    "compute": {
        "instance": {
            "n1-standard-4": cost(us_central1=(0.19, 0.07), us_east4=(0.21, 0.05)),
            "n1-standard-8": cost(us_central1=(0.38, 0.14), us_east4=(0.42, 0.10)),
            "g2-standard-4": cost(us_central1=(0.7, 0.4)),
            "g2-standard-8": cost(us_central1=(0.8, 0.5)),
            "a2-highgpu-1g": cost(us_central1=(3.7, 1.9), us_east4=(3.9, 2)),
            "a2-highgpu-8g": cost(us_central1=(29.6, 15.2), us_east4=(31.2, 16)),
            "c4-standard-4": cost(us_central1=(1, 1)),
        },
        "storage": {
            "ssd": {"cost": {region: {"month": 0.17} for region in REGIONS}},
            "hdd": {"cost": {"us-central1": {"month": 0.04}, "us-east4": {"month": 0.044}}},
        },
    },
}


def table(pricing: Mapping[str, Any] = PRICING, vms: str = VMS) -> tuple[Prices, Any]:
    rows = rows_of(pricing, list(csv.DictReader(vms.splitlines())), "2025-05-01", REGIONS)
    document = yaml.safe_load(text_of(rows, REGIONS))
    assert schema_faults(schema("prices.v1"), document) == []
    document["rows"].pop()  # Vertex AI's own prices, which are the same in every table
    return prices_from(document), document


def test_machines_have_the_first_catalogues_prices_and_the_fee() -> None:
    prices, document = table()
    east = prices.table("us-east4")
    assert east.machine("n1-standard-4") == Decimal("0.21") * Decimal("1.15")
    assert east.machine("n1-standard-96") == Decimal("0.21") * 24 * Decimal("1.15")
    assert east.machine("a2-highgpu-2g") == Decimal("7.8") * Decimal("1.15")
    assert (east.machine("g2-standard-4"), east.machine("c4-standard-4")) == (None, None)
    assert prices.table("us-central1").machine("g2-standard-8") == Decimal("0.8") * Decimal("1.15")
    assert east.disks == {
        "pd-ssd": Decimal("0.17") * Decimal("1.15"),
        "pd-standard": Decimal("0.044") * Decimal("1.15"),
    }
    assert prices.table("asia-east1").disks.keys() == {"pd-ssd"}
    assert {row["as_of"] for row in document["rows"]} == {"2026-07-30", "2025-05-01"}


def test_spot_prices_have_the_standard_machines_fee() -> None:
    spot = table()[0].table("us-central1", spot=True)
    assert spot.machine("n1-standard-8") == Decimal("0.14") + Decimal("0.15") * Decimal("0.38")
    assert spot.accelerators["NVIDIA_TESLA_T4"] == Decimal("0.14") + Decimal("0.15") * Decimal("0.35")


def test_attached_gpus_and_tpus_have_the_second_catalogues_highest_price_of_one() -> None:
    prices, _ = table()
    fee = Decimal("1.15")
    east, central = prices.table("us-east4"), prices.table("us-central1")
    assert east.accelerators == {"NVIDIA_TESLA_T4": Decimal("0.37") * fee}
    assert central.accelerators == {
        "NVIDIA_TESLA_T4": Decimal("0.35") * fee,
        "TPU_V2": Decimal("0.75") * fee,
    }
    assert (central.machine("cloud-tpu"), east.machine("cloud-tpu")) == (Decimal(0), None)
    assert east.machine("ct6e-standard-4t") == Decimal("10.8") * fee
    assert prices.table("asia-east1").machine("ct6e-standard-4t") is None


@pytest.mark.parametrize(
    ("pricing", "vms"),
    [
        ({**PRICING, "compute": {"instance": {}}}, VMS),
        ({"compute": PRICING["compute"]}, VMS),
        (PRICING, "Region,Price\nus-east4,1\n"),
        (PRICING, VMS.replace("0.35,0.14", "much,0.14")),
    ],
)
def test_a_catalogue_of_another_form_is_refused(pricing: Mapping[str, Any], vms: str) -> None:
    with pytest.raises(UnusablePrices, match="not of the expected form"):
        table(pricing, vms)


def test_the_shipped_table_was_made_so() -> None:
    text = (ROOT / "functions" / "prices.yaml").read_text()
    assert text.startswith(HEADER)
    regions = {region for row in yaml.safe_load(text)["rows"] for region in row["regions"]}
    assert regions == set(yaml.safe_load((Path(DEPLOY) / "regions.yaml").read_text())["training"])
