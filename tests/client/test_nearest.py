"""The names that a misspelt or cut one may mean."""

from trainmaster.client.nearest import nearest_names

RUNS = (
    "churn-20261123t211519-aaaaaaaaaa",
    "churn-20261123t211518-bbbbbbbbbb",
    "flowers-20261123t211518-cccccccccc",
)


def test_the_whole_name_of_a_cut_one_comes_first() -> None:
    said = nearest_names("churn-20261123t211518", RUNS)
    assert said.startswith(
        "Did you mean 'churn-20261123t211518-bbbbbbbbbb' or 'churn-20261123t211519-aaaaaaaaaa'"
    )


def test_a_misspelt_name_finds_the_ones_like_it_and_an_odd_one_none() -> None:
    assert nearest_names("flwers", ["flowers", "trees"]) == "Did you mean 'flowers'?"
    assert nearest_names("zzz", ["flowers", "trees"]) == ""
    assert nearest_names("", ["flowers", "trees"]) == ""


def test_at_most_three_names_are_suggested() -> None:
    assert nearest_names("run", [f"run-{number}" for number in range(9)]).count("'") == 6
