"""Views of an environment with packages that share folders."""

from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.processes import run_to_end
from trainstack.jobs.images.views import layer_environment, link_packages, make_environment, site_packages


def install(folder: Path, name: str, *paths: str, needs: str = "") -> None:
    """A package as pip leaves it."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = dict.fromkeys(paths, "") | {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\n{needed}"}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / info / "RECORD").write_text("".join(f"{path},,\n" for path in (*files, f"{info}/RECORD")))


def test_packages_that_share_folders_are_linked_together_and_without_their_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    install(
        own, "space-a", "space/a/__init__.py", "space/__pycache__/a.pyc", "space/both.py", needs="space-b"
    )
    install(own, "space-b", "space/b/__init__.py", "space/__pycache__/b.pyc", "space/both.py")
    install(own, "space-c", "space/c/__init__.py", "space/__pycache__/c.pyc")
    monkeypatch.syspath_prepend(str(own))
    view, over = tmp_path / "view", tmp_path / "over"
    make_environment(view)
    link_packages(view, ["space-a", "nowhere-at-all", "./path"])
    layer_environment(over, view)
    assert {path.name for path in (site_packages(view) / "space").iterdir()} == {
        "a",
        "b",
        "both.py",
        "__pycache__",
    }
    program = "import space.a, space.b, space.both, site; print(site.ENABLE_USER_SITE)\nimport space.c"
    done = run_to_end([over / "bin" / "python", "-c", program], cwd=tmp_path)
    assert (done.stdout, done.stderr.splitlines()[-1]) == (
        "True\n",
        "ModuleNotFoundError: No module named 'space.c'",
    )


def test_uv_takes_the_packages_of_a_view_for_installed(tmp_path: Path) -> None:
    make_environment(tmp_path / "view")
    link_packages(tmp_path / "view", ["requests"])
    command = [find_uv_bin(), "pip", "freeze", "--offline", "--python", str(tmp_path / "view/bin/python")]
    printed = run_to_end(command, check=True).stdout
    assert {"requests", "urllib3"} <= {line.partition("==")[0] for line in printed.splitlines()}
