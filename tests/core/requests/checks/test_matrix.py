"""A matrix has a document for each combination; what would make no different runs is refused, all faults at once."""

import pytest

from tests.core.parsed import sound_request, told
from trainmaster.orchestrator.core.requests.matrix import run_documents

HEAD = """
model_name: flowers
image: us-central1-docker.pkg.dev/my-project/other/image
cluster: {chief: {machine: n1-standard-4}}
"""
OTHER = "us-central1-docker.pkg.dev/my-project/other/image"


def test_values_become_flags_in_the_order_of_the_names_as_a_tuning_passes_them() -> None:
    text = (
        'args: [--epochs=2]\nmatrix: {lr: [0.1, 1e-5], "on": [true], "name.x": ["a b", "${run_id}"], n: [3]}'
    )
    documents = run_documents(sound_request(HEAD + text).document)
    assert [document["args"] for document in documents] == [
        ["--epochs=2", f"--lr={rate}", "--on=true", f"--name.x={name}", "--n=3"]
        for rate in ("0.1", "1e-5")
        for name in ("a b", "$${run_id}")
    ]
    assert all("matrix" not in document for document in documents)


@pytest.mark.parametrize(
    ("roles", "args"),
    [
        ("chief: {machine: n1-standard-4}, workers: {machine: n1-standard-4, count: 1}", {"": ["--lr=1"]}),
        (
            "chief: {machine: n1-standard-4}, workers: {machine: n1-standard-4, count: 1, args: [--own]}",
            {"": ["--lr=1"], "workers": ["--own", "--lr=1"]},
        ),
        (
            f"chief: {{machine: n1-standard-4, image: {OTHER}}}, evaluators: {{machine: n1-standard-4, count: 1, image: {OTHER}, args: [--own]}}",
            {"chief": ["--lr=1"], "evaluators": ["--own", "--lr=1"]},
        ),
    ],
)
def test_all_roles_programs_get_the_values_and_no_words_are_left_over(
    roles: str, args: dict[str, list[str]]
) -> None:
    image = "" if OTHER in roles else f"image: {OTHER}\n"
    request = sound_request(f"model_name: flowers\n{image}cluster: {{{roles}}}\nmatrix: {{lr: [1]}}")
    (document,) = run_documents(request.document)
    places = {"": document, **document["cluster"]}
    assert {role: place["args"] for role, place in places.items() if "args" in place} == args


def test_all_faults_of_a_matrix_come_in_one_report() -> None:
    text = """
args: [--depth, '3', --rate=1]
tuning: {metrics: [{id: a, goal: maximize}], parameters: {momentum: {type: double, min: 0, max: 1}}, max_trials: 2}
matrix:
  rate: [1, 2, 3, 4, 5, 6, 7, 8, 9]
  depth: [1, 2, '2', 3, 4, 5, 6, 7]
  "-x": [1]
  none: []
  of: {a: 1}
  deep: [[1]]
  api_key: [abc]
  start_from: [champion]
"""
    faults = told(HEAD + text)
    twice = "args already has this flag, so each run would receive it twice"
    assert {path: words.removeprefix(f"{path}: ").partition(";")[0] for path, words in faults.items()} == {
        "$.matrix": "a request has a matrix or a tuning, not both",
        "$.matrix.api_key[0]": "a request must not contain a secret, because it is stored and displayed",
        "$.matrix.start_from": "a matrix cannot choose the model that a run starts from",
        "$.matrix.deep[0]": "expected a string or a number or true or false",
        "$.matrix.depth": twice,
        "$.matrix.depth[2]": "duplicate value: two runs would be the same",
        "$.matrix.none": "too few entries",
        "$.matrix.of": "expected a list",
        "$.matrix.rate": twice,
        "$.matrix['-x']": "not a valid name",
    }


def test_runs_would_share_a_fixed_place_of_the_model_and_flags_must_be_the_images() -> None:
    shared = "model_uri: gs://models/fixed\nmatrix: {learningrate: [1, 2]}"
    faults = told(HEAD.replace("other/image", "trainmaster/trainer:latest") + shared)
    assert faults["$.matrix.learningrate"].split("; ")[2] == "did you mean 'learning_rate'?"
    assert faults["$.model_uri"].endswith("write gs://models/fixed/${run_id}")


@pytest.mark.parametrize(("values", "count"), [(8, 64), (9, 72)])
def test_a_matrix_has_at_most_64_combinations(values: int, count: int) -> None:
    text = f"{HEAD}matrix: {{a: {list(range(values))}, b: {list(range(8))}}}"
    if count <= 64:
        assert sound_request(text).runs == count
    else:
        assert told(text)["$.matrix"].endswith("list fewer values, or let a tuning choose them")
