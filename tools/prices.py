"""functions/prices.yaml, from two public catalogues of Compute Engine's prices.

python -m tools.prices --machines pricing.yml --accelerators vms.csv --accelerators-as-of 2025-05-01 \
    > functions/prices.yaml

pricing.yml: https://github.com/Cyclenerd/google-cloud-pricing-cost-calculator, made of Google's Cloud Billing Catalog,
has machines with the accelerators and local SSDs that belong to them, and disks, with the day of its making.
vms.csv: catalogs/v7/gcp/vms.csv of https://github.com/skypilot-org/skypilot-catalog, has GPUs that are attached to
machines, and TPUs; it has no date. Its prices of A100, H100 and B200 are not used: for some regions they are those of
flexible start, which are lower than the standard ones.
"""

import argparse
import csv
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from trainmaster.client.machines import shipped_machines
from trainmaster.orchestrator.core.admission.prices import UNKNOWN, series_of
from trainmaster.orchestrator.core.requests.gpus import NAMES
from trainmaster.resources import DEPLOY

MACHINES_SOURCE = "https://github.com/Cyclenerd/google-cloud-pricing-cost-calculator/blob/master/pricing.yml"
ACCELERATORS_SOURCE = "https://github.com/skypilot-org/skypilot-catalog/blob/master/catalogs/v7/gcp/vms.csv"
MAX_BYTES = 64 * 1024 * 1024
DIGITS = 8
TOLERANCE = Decimal("1e-5")
"""By how much machines of a series may differ in their price per unit, because the catalogue rounds."""
FEE = Decimal("0.15")
DISKS = {"pd-ssd": "ssd", "pd-standard": "hdd"}
"""Boot disks by their names in pricing.yml."""
TPU_CORES = {"tpu-v2": "TPU_V2", "tpu-v3": "TPU_V3"}
TPU_CHIPS = {"tpu-v5litepod": "ct5lp-hightpu-*t", "tpu-v6e": "ct6e-standard-*t"}
TPU_SLICES = {**TPU_CORES, **TPU_CHIPS}
"""TPU slices of vms.csv, for example `tpu-v2-8`, and what one unit of their size is called in the table."""
CLOUD_TPU = "cloud-tpu"
NO_PRICE = Decimal(700)
"""What vms.csv has for a TPU slice whose price it does not know."""
HEADER = """\
# What custom training costs, for the estimates and caps of docs/reference/admission.md; schemas/prices.v1.schema.json.
# Read only if the policy has caps on cost or asks for estimates. A price that no row has is unknown.
# Made by `python -m tools.prices`; add your own rows at the end: they win over those before them.
#
# A price is for all regions of its row, or it has a column for each of them, in their order; ~ is unknown.
# n1-standard-* is the price of one unit of the number in n1-standard-4, n1-standard-8 and so on.
#
# Vertex AI's own prices are Compute Engine's plus a fee for managing the machines. 0.15 is exactly the difference
# between both lists for n1-standard-4, and to seven digits for E2. Vertex AI's list could not be read for the
# other machines, accelerators, TPUs and disks: that their fee is the same is an assumption. So is that the fee of
# a Spot VM is that of the standard one, which is the higher of two readings. Spot prices change every month.
# The prices of A2 Ultra and A3 have their local SSDs in them.
# Cores of TPU v2 and v3 have the highest price per core of all slices; small slices of v2 cost less.
# The day of the second source is not known; the one given is the earliest that its contents allow.
#
# Unknown are prices with ~ for their region, the boot disk hyperdisk-balanced, and these machines, of which neither
# source has a standard price. Jobs with flexible start count with the standard price, which is higher.
#   a3-megagpu-8g in most regions
#   a3-ultragpu-8g
#   a4-highgpu-8g
#   a4x-highgpu-4g
#   tpu7x-standard-4t
schema: prices.v1
currency: USD
rows:
"""
VERTEX_ROW = """\
  # Vertex AI's own prices, which the fee above was derived from.
  - as_of: "2026-09-08"
    source: https://cloud.google.com/vertex-ai/pricing
    regions: [us-central1]
    machines: {n1-standard-4: 0.21849885, e2-standard-4: 0.154126276}
"""
Columns = Mapping[str, Mapping[str, Decimal]]
"""Name to region to price."""


class UnusablePrices(ValueError):
    """A catalogue is not of the expected form."""


@dataclass(frozen=True, kw_only=True)
class PriceRow:
    """Prices of one source, each for the regions where it is known."""

    source: str
    as_of: str
    spot: bool
    with_accelerators: bool = False
    machines: Columns
    accelerators: Columns
    disks: Columns


def rows_of(
    pricing: Mapping[str, Any], vms: Sequence[Mapping[str, str]], as_of: str, regions: Sequence[str]
) -> list[PriceRow]:
    """The rows of the table. `pricing` and `vms` are the catalogues, `as_of` is the day of the second.

    Raises:
        UnusablePrices: a catalogue lacks an expected key, or the machines of a series differ in their price per unit.
    """
    try:
        day = datetime.fromtimestamp(pricing["about"]["timestamp"], UTC).date().isoformat()
        machines = (_machine_rows(pricing, day, regions, spot=spot) for spot in (False, True))
        units = (_unit_rows(vms, as_of, regions, spot=spot) for spot in (False, True))
        return [row for pair in zip(machines, units, strict=True) for rows in pair for row in rows]
    except (KeyError, TypeError, InvalidOperation) as error:
        raise UnusablePrices(f"a catalogue is not of the expected form: {error!r}") from error


def _machine_rows(
    pricing: Mapping[str, Any], as_of: str, regions: Sequence[str], *, spot: bool
) -> Iterator[PriceRow]:
    """The machines without accelerators and those that come with them, both of pricing.yml."""
    instances, storage = pricing["compute"]["instance"], pricing["compute"]["storage"]
    disks = {name: _known_prices(storage[key]["cost"], "month", regions) for name, key in DISKS.items()}
    for whole in (False, True):
        types = [
            name for row in shipped_machines() if row.accelerator_required is whole for name in row.types
        ]
        priced = {
            name: _known_prices(instances[name]["cost"], "hour_spot" if spot else "hour", regions)
            for name in types
            if name in instances
        }
        yield PriceRow(
            source=MACHINES_SOURCE,
            as_of=as_of,
            spot=spot,
            with_accelerators=whole,
            machines=_by_series(priced),
            accelerators={},
            disks={} if spot or whole else disks,
        )


def _unit_rows(
    vms: Sequence[Mapping[str, str]], as_of: str, regions: Sequence[str], *, spot: bool
) -> Iterator[PriceRow]:
    """GPUs that are attached to machines, and TPUs, both of vms.csv: the highest price of one, of all zones and slices."""
    kinds: dict[str, dict[str, Decimal]] = {}
    for line in vms:
        name, count = _unit_of(line["AcceleratorName"])
        price, region = line["SpotPrice" if spot else "Price"], line["Region"]
        if name and price and region in regions and Decimal(line["Price"]) != NO_PRICE:
            one = Decimal(price) / (count or Decimal(line["AcceleratorCount"]))
            prices = kinds.setdefault(name, {})
            prices[region] = max(one, prices.get(region, one))
    machines = {name: prices for name, prices in kinds.items() if name in TPU_CHIPS.values()}
    accelerators = {name: prices for name, prices in kinds.items() if name not in TPU_CHIPS.values()}
    if not spot:  # a TPU's price has its host in it
        machines[CLOUD_TPU] = {
            region: Decimal(0) for name in TPU_CORES.values() for region in kinds.get(name, ())
        }
    yield PriceRow(
        source=ACCELERATORS_SOURCE,
        as_of=as_of,
        spot=spot,
        machines=machines,
        accelerators=accelerators,
        disks={},
    )


def _unit_of(name: str) -> tuple[str | None, int | None]:
    """What a line of vms.csv prices, and how many of it; None: by its AcceleratorCount. Most lines are not needed."""
    slice_name, _, size = name.rpartition("-")
    if slice_name in TPU_SLICES:
        return TPU_SLICES[slice_name], int(size)
    attached = {
        kind for row in shipped_machines() if not row.accelerator_required for kind in row.accelerators or ()
    }
    return (NAMES[name], None) if NAMES.get(name) in attached else (None, None)


# Any: the catalogue, whose shape is checked by reading it.
def _known_prices(costs: Mapping[str, Any], key: str, regions: Sequence[str]) -> dict[str, Decimal]:
    return {region: Decimal(str(costs[region][key])) for region in regions if costs.get(region, {}).get(key)}


def _by_series(priced: Columns) -> dict[str, Mapping[str, Decimal]]:
    """A series instead of its machines where all of them cost the same per unit, in every region."""
    series: dict[str, dict[str, int]] = {}
    for name in priced:
        key, size = series_of(name)
        series.setdefault(key, {})[name] = size
    prices_of: dict[str, Mapping[str, Decimal]] = {}
    for key, sizes in series.items():
        prices_of |= _one_price(key, sizes, priced) or {name: priced[name] for name in sizes}
    return {name: prices for name, prices in prices_of.items() if prices}


def _one_price(key: str, sizes: Mapping[str, int], priced: Columns) -> dict[str, Mapping[str, Decimal]]:
    """The price of one unit of the series, by region; nothing if its machines differ in it."""
    price_of: dict[str, Decimal] = {}
    for region in dict.fromkeys(region for name in sizes for region in priced[name]):
        units = [priced[name][region] / size for name, size in sizes.items() if region in priced[name]]
        if len(units) != len(sizes) or max(units) - min(units) > TOLERANCE * max(units):
            return {}
        price_of[region] = max(units)
    return {key: price_of} if len(sizes) > 1 else {}


def text_of(rows: Sequence[PriceRow], regions: Sequence[str]) -> str:
    """The file."""
    return HEADER + "".join(_row_text(row, regions) for row in rows) + VERTEX_ROW


def _row_text(row: PriceRow, regions: Sequence[str]) -> str:
    groups = {"machines": row.machines, "accelerators": row.accelerators, "disks": row.disks}
    priced = {region for group in groups.values() for prices in group.values() for region in prices}
    columns = [region for region in regions if region in priced]
    flags = {"spot": row.spot, "with_accelerators": row.with_accelerators}
    lines = [f'  - as_of: "{row.as_of}"', f"    source: {row.source}", f"    fee: {FEE}"]
    lines += [f"    {key}: true" for key, is_so in flags.items() if is_so]
    lines += ["    regions:", *textwrap.wrap(f"[{', '.join(columns)}]", 110, **_INDENT)]
    for group, content in groups.items():
        lines += [f"    {group}:"] if content else []
        lines += [
            f"      {name}: {_column_text(prices, columns)}" for name, prices in content.items() if prices
        ]
    return "\n".join(lines) + "\n"


_INDENT: Any = {"initial_indent": " " * 6, "subsequent_indent": " " * 7, "break_on_hyphens": False}


def _column_text(prices: Mapping[str, Decimal], regions: Sequence[str]) -> str:
    """One price for all, or one for each region."""
    texts = [_digits_of(prices[region]) if region in prices else UNKNOWN for region in regions]
    return texts[0] if len(set(texts)) == 1 and texts[0] != UNKNOWN else " ".join(texts)


def _digits_of(price: Decimal) -> str:
    return f"{Context(prec=DIGITS).plus(price).normalize():f}"


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The faster one where it is built: the catalogue has 200,000 lines."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prices", description=__doc__)
    parser.add_argument("--machines", type=Path, required=True, metavar="pricing.yml")
    parser.add_argument("--accelerators", type=Path, required=True, metavar="vms.csv")
    parser.add_argument("--accelerators-as-of", required=True, metavar="DAY", help="the day of vms.csv")
    asked = parser.parse_args()
    try:
        pricing = yaml.load(_text_of(asked.machines), Loader=_LOADER)  # noqa: S506 - a safe one
        vms = list(csv.DictReader(_text_of(asked.accelerators).splitlines()))
        regions = yaml.safe_load((DEPLOY / "regions.yaml").read_text())["training"]
        sys.stdout.write(text_of(rows_of(pricing, vms, asked.accelerators_as_of, regions), regions))
    except (UnusablePrices, OSError, yaml.YAMLError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _text_of(path: Path) -> str:
    if path.stat().st_size > MAX_BYTES:
        raise UnusablePrices(f"{path} has {path.stat().st_size} bytes; allowed: at most {MAX_BYTES}")
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
