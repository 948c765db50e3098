"""The console finds a drop's status where the functions write it, whatever the drop is called."""

from hypothesis import example, given
from hypothesis import strategies as st

from trainmaster.client.records import status_object
from trainmaster.orchestrator.core.names import status_object as written_object

PARTS = st.one_of(
    st.sampled_from(["", ".", "..", "requests", "a.yaml", "\u0430", "\n", "x" * 700]), st.text()
)


@given(st.lists(PARTS, min_size=1, max_size=4).map("/".join))
@example("requests/a.yaml")
@example("requests/../a.yaml")
@example("requests/" + "x" * 1010)
@example("requests/" + "x" * 1003)
@example("\ud800")
def test_a_status_is_looked_for_where_it_was_written(dropped_name: str) -> None:
    assert status_object(dropped_name) == written_object(dropped_name)
