"""The project of a script: which folder is packed, what is installed, and what would certainly end the script."""

import io
import tarfile
from pathlib import Path

import pytest

from tests.client.submission.test_examination import examined
from tests.narrowing import present
from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.examination import Examination
from trainmaster.client.submission.source import NO_FILE

PROJECT = """[project]
name = "house"
version = "1"
dependencies = ["numpy>=2"]
optional-dependencies = {gpu = ["cupy"], all = ["house[gpu]", "tqdm"]}
[dependency-groups]
base = ["click"]
train = [{include-group = "base"}, "rich; sys_platform == 'linux'"]
"""
REQUEST = "model_name: m\nscript: SCRIPT\ncluster: {chief: {machine: n1-standard-4}}\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def submitted(folder: Path, script: str = "file: jobs/train.py", **edits: object) -> Examination:
    return examined(REQUEST.replace("SCRIPT", f"{{{script}}}"), str(folder / "r.yaml"), **edits)


def installed(found: Examination) -> str:
    """The requirements file that a replica takes."""
    assert found.faults == ()
    with tarfile.open(fileobj=io.BytesIO(present(found.packed).content)) as tar:
        for name in (".trainmaster/requirements.txt", "requirements.txt"):
            if name in tar.getnames():
                return present(tar.extractfile(name)).read().decode()
    return ""


def problems(found: Examination) -> dict[str, str]:
    return {fault.path: fault.problem for fault in found.faults}


@pytest.mark.parametrize("mark", ["pyproject.toml", "setup.py", ".git/HEAD"])
def test_by_default_the_root_is_the_nearest_folder_of_a_project(tmp_path: Path, mark: str) -> None:
    write(
        tmp_path,
        **{mark: "", "lib/x.py": "", "jobs/deep/train.py": ""},
    )
    packed = present(examined("", NO_FILE, script=tmp_path / "jobs" / "deep" / "train.py").packed)
    assert (packed.file, packed.folder) == ("jobs/deep/train.py", tmp_path)
    assert packed.notes[0].startswith(
        f"Packs {tmp_path}, which has {mark.partition('/')[0]}. For another root: --root DIR"
    )
    named = examined("", NO_FILE, script=tmp_path / "jobs" / "deep" / "train.py", root=tmp_path / "jobs")
    assert (present(named.packed).file, present(named.packed).notes) == ("deep/train.py", ())


def test_the_home_directory_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path, **{".git/HEAD": "", "home/.git/HEAD": "", "home/try/train.py": ""})
    packed = present(examined("", NO_FILE, script=tmp_path / "home" / "try" / "train.py").packed)
    assert (packed.file, packed.notes) == ("train.py", ())


def test_a_module_is_looked_for_in_the_root_and_in_its_src(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            "src/house/__init__.py": "",
            "src/house/__main__.py": "",
            "src/house/fit.py": "",
            "src/other/x.py": "",
        },
    )
    for module, file in (("house", "src/house/__main__.py"), ("house.fit", "src/house/fit.py")):
        found = submitted(tmp_path, f"module: {module}")
        assert (found.faults, present(found.packed).file) == ((), file)
        assert b"module: " + module.encode() in found.content
    (problem,) = problems(submitted(tmp_path, "module: house.fitt")).values()
    assert problem.endswith("or its src has no module 'house.fitt' that `python -m house.fitt` could run.")
    with pytest.raises(ClientRefused, match="has no module 'nowhere'"):
        examined("", NO_FILE, module="nowhere", root=tmp_path)


@pytest.mark.parametrize(
    ("files", "script", "source", "lines"),
    [
        ({}, "file: jobs/train.py", "", ""),
        ({"requirements.txt": "numpy\n"}, "file: jobs/train.py", "requirements.txt", "numpy\n"),
        (
            {"requirements.txt": "numpy\n", "jobs/requirements.txt": "tqdm\n"},
            "file: jobs/train.py, root: .",
            "jobs/requirements.txt",
            "-r ../jobs/requirements.txt\n",
        ),
        (
            {"requirements.txt": "", "jobs/requirements.txt": "tqdm\n", "jobs/deep/train.py": ""},
            "file: jobs/deep/train.py, root: .",
            "jobs/requirements.txt",
            "-r ../jobs/requirements.txt\n",
        ),
        ({"pyproject.toml": PROJECT}, "file: jobs/train.py", "pyproject.toml", "numpy>=2\n"),
        (
            {"pyproject.toml": PROJECT, "requirements.txt": "numpy\n"},
            "file: jobs/train.py, extras: [ALL], groups: [train]",
            "pyproject.toml with the extras ALL and the groups train",
            'numpy>=2\ntqdm\ncupy\nclick\nrich; sys_platform == "linux"\n',
        ),
        (
            {"jobs/train.py": '# /// script\n# dependencies = ["tqdm"]\n# ///\n', "pyproject.toml": PROJECT},
            "file: jobs/train.py",
            "the header of jobs/train.py",
            "tqdm\n",
        ),
    ],
)
def test_the_packages_are_those_that_the_project_names(
    files: dict[str, str], script: str, source: str, lines: str, tmp_path: Path
) -> None:
    write(tmp_path, **{"jobs/train.py": "", **files})
    found = submitted(tmp_path, script)
    assert installed(found) == lines
    assert present(found.packed).notes[-1:] == ((f"Installs the packages of {source}",) if source else ())


def test_a_lock_is_taken_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, **{"jobs/train.py": "", "pyproject.toml": PROJECT.replace("numpy>=2", "packaging")})
    write(tmp_path, **{"uv.lock": LOCK})
    assert installed(submitted(tmp_path)) == "packaging==24.1\n"
    write(tmp_path, **{"uv.lock": "version = 1\n["})
    assert problems(submitted(tmp_path))["$.script.file"].startswith("uv.lock cannot be read: ")


LOCK = """version = 1
revision = 3
requires-python = ">=3.10"

[[package]]
name = "packaging"
version = "24.1"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "house"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "packaging" }]
"""


@pytest.mark.parametrize(
    ("files", "script", "path", "problem"),
    [
        ({"requirements.txt": "numpy==1.26.4\n"}, "", "file", "requirements.txt asks for numpy==1.26.4, and pyproject.toml for numpy>=2."),
        ({}, "extras: [gpus]", "extras", "pyproject.toml has no extras gpus. It has: gpu, all."),
        ({}, "groups: [dev]", "groups", "pyproject.toml has no groups dev. It has: base, train."),
        ({"requirements.txt": "click \\\n  >=1 --hash=sha256:0\n./lib\ntabulate >>= 3 !!\n"}, "", "file", "requirements.txt:4: 'tabulate >>= 3 !!' is not a requirement"),
        ({".gitignore": f"a{'?' * 9999}\n"}, "groups: []", "file", "which has pyproject.toml. For another root: --root DIR, or script.root. '"),
        ({}, "root: elsewhere", "root", "elsewhere' is not a folder. Name one from the request's."),
        ({"pyproject.toml": "[project\n"}, "", "file", "pyproject.toml is not TOML: "),
        ({"pyproject.toml": "[dependency-groups]\na = 3\n"}, "groups: [a]", "file", "its dependency groups cannot be read: "),
        ({"requirements.txt": "-r ../base.txt\n"}, "", "file", "no such file in the root: -r ../base.txt. Move it there."),
        ({"pyproject.toml": PROJECT.replace("numpy>=2", "numpy please")}, "", "file", "'numpy please' is not a requirement"),
        ({"requirements.txt": "-r more.txt\n", "more.txt": "--index-url https://me:Zx81@host/simple\n"}, "", "file", "more.txt:1 holds a password in a URI"),
        ({"pyproject.toml": f'{PROJECT}[[tool.uv.index]]\nurl = "https://me:Zx81@host/simple"\n'}, "", "file", "holds a password in a URI"),
        ({"jobs/train.py": "import lib.net\n", "lib/__init__.py": "", "lib/net.py": "from . import bad\n", "lib/bad.py": "x = (\n"}, "", "file", "cannot compile line 1: '(' was never closed"),
    ],
)  # fmt: skip
def test_a_project_that_cannot_be_sent_is_a_fault_at_the_key_that_asks_for_it(
    files: dict[str, str], script: str, path: str, problem: str, tmp_path: Path
) -> None:
    write(tmp_path, **{"jobs/train.py": "", "pyproject.toml": PROJECT, **files})
    found = problems(submitted(tmp_path, f"{script or 'root: .'}, file: jobs/train.py, launcher: torch"))
    assert problem in found.pop(f"$.script.{path}")
    assert "Zx81" not in str(found)
    assert found == {"$.script.launcher": "not an allowed value"}


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"jobs/train.py": "import torch.nn as nn\n"}, "torch"),
        ({"jobs/train.py": "from google.cloud import storage\n"}, "google"),
        ({"jobs/train.py": "from lib import net\n", "lib/net.py": "import sklearn\n"}, "sklearn"),
        ({"jobs/train.py": "import torch\n", "requirements.txt": "lightning\n"}, ""),
        ({"jobs/train.py": "import torch\n", "setup.py": "install_requires"}, ""),
        ({"jobs/train.py": "try:\n    import torch\nexcept ImportError:\n    pass\n"}, ""),
        ({"jobs/train.py": "import torch\n", "torch/fake.py": ""}, ""),
        ({"jobs/train.py": "import tensorflow, numpy, house, os\n"}, ""),
        ({"jobs/train.py": "from data import x\n", "jobs/data/x.py": "", ".gitignore": "data/\n"}, "data.x"),
    ],
)
def test_a_usual_module_that_nothing_installs_is_refused_unless_forced(
    files: dict[str, str], missing: str, tmp_path: Path
) -> None:
    write(tmp_path, **files)
    found = submitted(tmp_path, "root: ., file: jobs/train.py")
    assert [fault.problem.split()[1].rstrip(",") for fault in found.faults] == [missing] * bool(missing)
    forced = submitted(tmp_path, "root: ., file: jobs/train.py", force=True)
    assert (forced.faults, len(forced.warnings)) == ((), len(found.faults) + ("setup.py" in files))
    own_image = submitted(
        tmp_path, "root: ., file: jobs/train.py", image="us-docker.pkg.dev/my-project/a/b:1"
    )
    assert own_image.warnings == ()


@pytest.mark.parametrize(
    ("files", "doubt"),
    [
        ({"pyproject.toml": "[project]\ndynamic = ['dependencies']\n"}, "pyproject.toml's packages are not"),
        (
            {"pyproject.toml": "[tool.poetry.dependencies]\ntorch = '2'\n"},
            "pyproject.toml's packages are not",
        ),
        ({"Pipfile": ""}, "Pipfile's packages are not read: export them to requirements.txt"),
        (
            {"pyproject.toml": "[project]\nrequires-python = '>=3.12'\n"},
            "asks for python >=3.12, and the image",
        ),
        (
            {"jobs/train.py": "# /// script\n# requires-python = '<3.11'\n# ///\n"},
            "asks for python <3.11, and",
        ),
        ({"pyproject.toml": "[project]\nrequires-python = '>=3.11.4'\n"}, ""),
    ],
)
def test_what_of_a_project_does_not_count_is_a_warning(
    files: dict[str, str], doubt: str, tmp_path: Path
) -> None:
    write(tmp_path, **{"jobs/train.py": "", **files})
    found = submitted(tmp_path, "root: ., file: jobs/train.py")
    assert found.faults == ()
    assert "".join(warning.problem for warning in found.warnings).startswith(doubt)
    assert bool(found.warnings) is bool(doubt)


def test_a_file_that_is_no_text_is_its_only_fault(tmp_path: Path) -> None:
    assert problems(submitted(tmp_path, "file: 3")).keys() == {"$.script.file"}


def test_a_launcher_that_nothing_installs_is_refused_unless_forced(tmp_path: Path) -> None:
    write(tmp_path, **{"jobs/train.py": ""})
    problem = "is of torch, which neither the image nor requirements.txt beside the script has"
    assert problems(submitted(tmp_path, launcher="torchrun")) == {"$.script.launcher": problem}
    forced = submitted(tmp_path, launcher="torchrun", force=True)
    assert (forced.faults, forced.forced) == ((), (problem,))


def test_a_launcher_is_packed_with_the_script_that_it_starts(tmp_path: Path) -> None:
    write(tmp_path, **{"jobs/train.py": "", "jobs/requirements.txt": "torch\n"})
    found = submitted(tmp_path, launcher="torchrun")
    with tarfile.open(fileobj=io.BytesIO(present(found.packed).content)) as tar:
        assert ".trainmaster/trainer/launch/__main__.py" in tar.getnames()
    assert b"launcher: torchrun" in found.content
    for options in ({"launcher": "torchrun"}, {"root": tmp_path}, {"force": True}):
        with pytest.raises(ClientRefused, match="are for a script that is packed"):
            examined(**options)


TASK = """name: llama
resources: {accelerators: "A100:8"}
num_nodes: 2
envs: {A: 1}
setup: pip install x
run: |
  torchrun --nproc_per_node=8 \\
    train.py --lr 0.1
"""


def test_a_task_of_skypilot_is_answered_with_the_request_that_it_would_be() -> None:
    with pytest.raises(ClientRefused, match="a SkyPilot task, not a request") as refused:
        examined(TASK)
    first, _, text = str(refused.value).partition("\n\n")
    request, _, rest = text.partition("\n\n")
    assert first.startswith("request.yaml: ")
    assert (
        rest == "It leaves out envs, num_nodes, setup. Packages belong in requirements.txt or pyproject.toml."
    )
    assert problems(examined(request)).keys() == {"$.script.file"}  # which is not here; all else is right
    assert "launcher: torchrun" in request
    for odd in ("run: 1\nsetup: 2\n", "run: [a]\nresources: {accelerators: {}}\nnum_nodes: x\n"):
        with pytest.raises(ClientRefused, match="As a request it would be"):
            examined(odd)


def test_a_notebook_is_refused_with_the_command_that_makes_a_script(tmp_path: Path) -> None:
    (tmp_path / "a b.ipynb").touch()
    with pytest.raises(
        ClientRefused, match=r"jupyter nbconvert --to script '.*a b.ipynb'\n.*--script '.*a b.py'"
    ):
        examined("", NO_FILE, script=tmp_path / "a b.ipynb")
