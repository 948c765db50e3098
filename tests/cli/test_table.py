"""Tables leave out columns on a narrow terminal, and nothing in a pipe."""

import click

from trainmaster.cli.table import table_lines

ROWS = [
    {"RUN": "cassava-20260302t081500-3f9a1c04de", "STATE": "running", "MODEL": "cassava", "SOURCE": "upload"},
    {"RUN": "b", "STATE": "succeeded", "MODEL": "a-much-longer-name", "SOURCE": "rule"},
]


def plain(width: int | None) -> list[str]:
    return [click.unstyle(line) for line in table_lines(ROWS, width=width, spare=("SOURCE", "MODEL"))]


def test_a_pipe_gets_every_column_whole() -> None:
    assert plain(None) == [
        "RUN                                 STATE      MODEL               SOURCE",
        "cassava-20260302t081500-3f9a1c04de  running    cassava             upload",
        "b                                   succeeded  a-much-longer-name  rule",
    ]


def test_columns_are_left_out_in_order_until_the_rest_fits() -> None:
    assert plain(73) == plain(None)
    assert plain(72)[0] == "RUN                                 STATE      MODEL"
    assert plain(45)[1] == "cassava-20260302t081500-3f9a1c04de  running"


def test_ids_are_never_cut_however_narrow_the_terminal() -> None:
    assert plain(10) == plain(45)


def test_no_rows_make_no_table() -> None:
    assert table_lines([], width=80) == []
