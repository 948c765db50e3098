"""The table of published prices: schemas/prices.v1.schema.json."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from trainmaster.orchestrator.core.policy.currency import amount

UNKNOWN = "~"
"""What a column of prices has for a region whose price is unknown."""
_SIZED = re.compile(r"(.*-)([0-9]{1,9})([gt]?)")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Prices per hour by machine type and accelerator type, and per GB and month by disk type.

    A machine `n1-standard-*` prices all types of that name: its price is multiplied by their number.
    `whole`: the machines whose price includes their accelerators.
    """

    machines: Mapping[str, Decimal]
    accelerators: Mapping[str, Decimal]
    disks: Mapping[str, Decimal]
    whole: frozenset[str] = frozenset()

    def machine(self, name: str) -> Decimal | None:
        """The price of a machine type: its own, or that of its series times its number."""
        series, size = series_of(name)
        if name in self.machines:
            return self.machines[name]
        return self.machines[series] * size if series in self.machines else None

    def is_whole(self, name: str) -> bool:
        return (name if name in self.machines else series_of(name)[0]) in self.whole


def series_of(machine: str) -> tuple[str, int]:
    """`n1-standard-8` is 8 of `n1-standard-*`, and `a2-highgpu-2g` 2 of `a2-highgpu-*g`; others are one of themselves."""
    sized = _SIZED.fullmatch(machine)
    return (f"{sized[1]}*{sized[3]}", int(sized[2])) if sized else (machine, 1)


_KINDS = ("machines", "accelerators", "disks")


# Any: the schema validates the types.
@dataclass(frozen=True, kw_only=True)
class Prices:
    """The rows of the table; where two price the same thing, the later one wins.

    `as_of` is the date of the oldest row.
    """

    as_of: str
    currency: str
    rows: Sequence[Mapping[str, Any]]
    _tables: dict[tuple[str, bool], Table] = field(default_factory=dict, repr=False, compare=False)

    def table(self, region: str, *, spot: bool = False) -> Table:
        """The prices in a region, of which some or all may be unknown. A region's are read when first needed.

        Vertex AI does not publish what its fee is for Spot VMs: it counts in full, as for standard machines, so that
        the price is an upper bound.
        """
        if (region, spot) not in self._tables:
            bare = self._read(region, spot=False, fee=Decimal(0)) if spot else None
            self._tables[region, spot] = self._read(region, spot=spot, standard=bare)
        return self._tables[region, spot]

    def _read(
        self, region: str, *, spot: bool, fee: Decimal | None = None, standard: Table | None = None
    ) -> Table:
        found: dict[str, dict[str, Decimal]] = {kind: {} for kind in _KINDS}
        whole: set[str] = set()
        for row in self.rows:
            if row.get("spot", False) is not spot or region not in row["regions"]:
                continue
            share = amount(row.get("fee", 0)) if fee is None else fee
            for kind in _KINDS:
                base: Mapping[str, Decimal] = getattr(standard, kind) if standard else {}
                for name, price in _prices_of(row, kind, region):
                    found[kind][name] = price + share * base.get(name, price)
                    if kind == "machines":
                        (whole.add if row.get("with_accelerators", False) else whole.discard)(name)
        return Table(**found, whole=frozenset(whole))


def prices_from(document: Mapping[str, Any]) -> Prices:
    """The table in a document that its schema accepts; any other may raise any error.

    Raises:
        ValueError: a price has not one column for each region of its row.
    """
    rows = document["rows"]
    for number, row in enumerate(rows):
        for kind in _KINDS:
            for name, prices in row.get(kind, {}).items():
                columns, regions = len(str(prices).split()), len(row["regions"])
                if isinstance(prices, str) and columns != regions:
                    where = f"rows[{number}].{kind}[{name!r}]"
                    raise ValueError(f"{where} has {columns} prices for {regions} regions")
    return Prices(as_of=min(row["as_of"] for row in rows), currency=document["currency"], rows=tuple(rows))


def _prices_of(row: Mapping[str, Any], kind: str, region: str) -> Iterator[tuple[str, Decimal]]:
    """The row's known prices in that region, without its fee."""
    column = row["regions"].index(region)
    for name, prices in row.get(kind, {}).items():
        price = prices.split()[column] if isinstance(prices, str) else amount(prices)
        if price != UNKNOWN:
            yield name, Decimal(price)
