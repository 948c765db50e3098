"""The archive of a script's folder: what is in it, what is not, and when it is refused."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from trainmaster.client.errors import ClientRefused
from trainmaster.client.files.downloaded import LIST, add_downloaded
from trainmaster.client.submission import pack
from trainmaster.client.submission.pack import Why, pack_script
from trainmaster.client.terminal import size_text


def write(folder: Path, **files: str) -> Path:
    """A script with these files beside it, by their paths; the script's path."""
    for name, text in {"train.py": "print(1)\n", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "train.py"


def files(folder: Path, **more: str) -> tuple[str, ...]:
    return pack_script(write(folder, **more)).files


def test_the_folder_is_packed_with_its_packages_and_requirements(tmp_path: Path) -> None:
    packed = pack_script(write(tmp_path, **{"lib/net.py": "", "requirements.txt": "numpy\n"}))
    assert packed.files == ("lib/net.py", "requirements.txt", "train.py")
    assert packed.file == "train.py"
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as tar:
        assert tar.getnames() == list(packed.files)
        assert {member.mtime for member in tar} == {0}
    assert packed.sha256 == hashlib.sha256(packed.content).hexdigest()


def test_the_same_files_make_the_same_archive_elsewhere_and_later(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, **{"a/b.py": "x"}) for name in ("one", "other"))
    os.utime(other, (1, 1))
    assert pack_script(one).content == pack_script(other).content
    other.write_text("print(2)\n")
    assert pack_script(one).sha256 != pack_script(other).sha256


def test_an_executable_file_stays_executable(tmp_path: Path) -> None:
    script = write(tmp_path, **{"tool.sh": "#!/bin/sh\n"})
    (tmp_path / "tool.sh").chmod(0o750)
    with tarfile.open(fileobj=io.BytesIO(pack_script(script).content)) as tar:
        assert {member.name: member.mode for member in tar} == {"tool.sh": 0o755, "train.py": 0o644}


def test_what_tools_keep_and_make_is_not_packed(tmp_path: Path) -> None:
    made = {
        ".env": "KEY=1",
        ".config/key": "",
        "__pycache__/a.pyc": "",
        "b.pyc": "",
        "venv/pyvenv.cfg": "",
        "venv/x.py": "",
    }
    assert files(tmp_path, **made) == ("train.py",)


def test_the_gitignores_of_the_repository_around_the_folder_and_of_folders_in_it_count(
    tmp_path: Path,
) -> None:
    write(
        tmp_path, **{".gitignore": "*.csv\n/jobs/big\n", ".git/HEAD": "", "jobs/.gitignore": "!small.csv\n"}
    )
    inside = {"a.csv": "", "small.csv": "", "big/x": ""}
    assert files(tmp_path / "jobs" / "own", **inside) == ("big/x", "small.csv", "train.py")
    assert files(tmp_path, **inside) == (
        "big/x",
        "jobs/own/big/x",
        "jobs/own/small.csv",
        "jobs/own/train.py",
        "train.py",
    )


def test_links_to_files_of_the_folder_are_packed_as_files_and_links_to_folders_left_out(
    tmp_path: Path,
) -> None:
    write(tmp_path / "data")
    script = write(tmp_path / "own", **{"data/a.csv": "1"})
    (script.parent / "folder").symlink_to(tmp_path / "data")
    (script.parent / "again").symlink_to(script.parent)
    (script.parent / "a.csv").symlink_to(script.parent / "data" / "a.csv")
    (script.parent / "nowhere").symlink_to(tmp_path / "nowhere")
    (script.parent / "itself").symlink_to("itself")
    (script.parent / "long").symlink_to("x" * 300)
    packed = pack_script(script)
    assert packed.files == ("a.csv", "data/a.csv", "train.py")
    assert packed.left_out == {Why.LINK: ("again", "folder"), Why.BROKEN: ("itself", "long", "nowhere")}


def test_what_is_neither_a_file_nor_a_folder_is_left_out_without_being_read(tmp_path: Path) -> None:
    script = write(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to(os.devnull)
    packed = pack_script(script)
    assert (packed.files, packed.left_out) == (("train.py",), {Why.SPECIAL: ("null", "pipe")})


def test_a_stacks_state_is_recognized_by_its_files_and_never_packed(tmp_path: Path) -> None:
    state = {"lock": "", "project.json": "{}", "user/access-token": "secret", "storage/objects.sqlite": ""}
    script = write(tmp_path / "house", **{f"mine/{name}": text for name, text in state.items()})
    packed = pack_script(script)
    assert (packed.files, packed.left_out) == (("train.py",), {Why.STATE: ("mine/",)})
    with pytest.raises(ClientRefused, match=r"is a local stack's state folder.*Move the script"):
        pack_script(write(tmp_path / "mixed", **state))


def test_what_was_downloaded_is_not_packed_and_the_rest_of_its_folder_is(tmp_path: Path) -> None:
    script = write(tmp_path, **{"model/saved_model.pb": "x", "model/own.py": "", "events.out": ""})
    add_downloaded(tmp_path / "model", ["saved_model.pb", "variables/index"])
    add_downloaded(tmp_path, ["events.out"])
    packed = pack_script(script)
    assert packed.files == ("model/own.py", "train.py")
    assert packed.left_out == {Why.DOWNLOADED: ("events.out", "model/saved_model.pb")}
    (tmp_path / "model" / LIST).unlink()
    assert "model/saved_model.pb" in pack_script(script).files


def test_a_link_to_a_file_that_is_not_packed_is_refused_unless_it_is_included(tmp_path: Path) -> None:
    script = write(tmp_path / "own")
    (tmp_path / "passwd").write_text("x")
    (script.parent / "users.txt").symlink_to("../passwd")
    with pytest.raises(ClientRefused, match=rf"users\.txt -> {tmp_path / 'passwd'}.*--include users\.txt"):
        pack_script(script)
    assert pack_script(script, include=["users.txt"]).files == ("train.py", "users.txt")
    (script.parent / "users.txt").unlink()
    (script.parent / ".env").write_text("x")
    (script.parent / "settings.txt").symlink_to(".env")
    with pytest.raises(ClientRefused, match=r"settings\.txt -> .*\.env"):
        pack_script(script)
    (script.parent / "settings.txt").unlink()
    (tmp_path / "linked").symlink_to(script.parent)
    assert pack_script(tmp_path / "linked" / "train.py").files == ("train.py",)


SECRETS = {
    "house-1a2b.json": (
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG"}',
        "a private key",
    ),
    "id_rsa": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n", "a private key"),
    "notes.txt": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBGAAAAEBCADAAAAA\n", "a private key"),
    "padded.json": (" " * 70_000 + "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n", "a private key"),
    "server.ppk": ("PuTTY-User-Key-File-3: ssh-ed25519\n", "a PuTTY private key"),
    "adc": ('{"type": "authorized_user", "refresh_token": "1//0abcdefgh"}', "gcloud's credentials of a user"),
    "client_secret.json": ('{"installed": {"client_secret": "GOCSPX-abcdefgh"}}', "an OAuth client secret"),
    "credentials": (f"[default]\naws_secret_access_key = {'Ab1/' * 10}\n", "AWS credentials"),
    "kaggle.json": ('{"username":"me","key":"0123456789abcdef0123456789abcdef"}', "a Kaggle key"),
    "netrc": (
        "machine api.wandb.ai\n  login user\n  password 0123\n",
        "a password for a machine, as in .netrc",
    ),
    "terraform.tfstate": ("{}", "a Terraform state"),
    "terraform.tfstate.backup": ("{}", "a Terraform state"),
    "release.jks": ("\xfe\xed\xfe\xed", "a Java key store"),
    "mine.kdbx": ("\x03\xd9\xa2\x9a", "a KeePass database"),
    "old.p12": ("", "a PKCS #12 key store"),
    "shadow": ("root:$6$salt$hash:19000:0:99999:7:::\n", "hashes of passwords"),
    "settings.toml": (f'token = "hf_{"a" * 34}"\n', "a Hugging Face token"),
    "notebook.ipynb": (
        '["-----BEGIN RSA PRIVATE KEY-----\\n",\n   "MIIEowIBAAKCAQEAabcd\\n"]',
        "a private key",
    ),
    "key.txt": ("\ufeff-----BEGIN RSA PRIVATE KEY-----\r\nMIIEowIBAAKCAQEA\r\n", "a private key"),
    "openai.yaml": (f"key: sk-proj-{'a1' * 20}T3BlbkFJ{'b2' * 20}", "an OpenAI key"),
    "anthropic.yaml": (f"key: sk-ant-api03-{'a1' * 30}", "an Anthropic key"),
    "gitlab.txt": (f"glpat-{'a1' * 10}", "a GitLab token"),
    "stripe.txt": (f"sk_live_{'a1' * 12}", "a Stripe key"),
    "databricks.cfg": (f"token = dapi{'0a' * 16}", "a Databricks token"),
    "wandb.sh": (f"export WANDB_API_KEY={'0a' * 20}", "a Weights & Biases key"),
    "kaggle.sh": (f"KAGGLE_KEY={'0a' * 16}", "a Kaggle key"),
    "prod.env": ("DB_PASSWORD=correct-horse", "a variable with a secret"),
    "remote.cfg": ("url = https://me:0123456789@example.com/repo.git\n", "a password in a URI"),
}


def test_files_with_secrets_are_left_out_by_their_content_and_named_with_its_kind(tmp_path: Path) -> None:
    other = {
        "config.json": '{"key": "0123456789abcdef0123456789abcdef", "client_secret": null}',
        "proxy.yaml": 'url: "http://{user}:{password}@{host}/ or http://user:password@host"\n',
        "ca.pem": "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0B\n",
        "connect.py": 'URL = "postgres://user:password@host/db"\n',
        "find_keys.py": 'KEY = "-----BEGIN PRIVATE KEY-----"\nif KEY in text: print(os.environ["PASSWORD"])\n',
    }
    script = write(tmp_path, **other)
    for name, (text, _) in SECRETS.items():
        (tmp_path / name).write_bytes(text.encode("utf-16-le" if text.startswith("\ufeff") else "latin-1"))
    packed = pack_script(script)
    assert packed.files == ("ca.pem", "config.json", "connect.py", "find_keys.py", "proxy.yaml", "train.py")
    assert packed.left_out == {
        Why.CONFIDENTIAL: tuple(sorted(f"{name} ({kind})" for name, (_, kind) in SECRETS.items()))
    }


def test_a_program_with_a_token_is_refused_and_an_included_file_is_packed(tmp_path: Path) -> None:
    token = f"ghp_{'a' * 36}"
    script = write(tmp_path, **{"lib/hub.py": f"TOKEN = {token!r}\n", "id_rsa": SECRETS["id_rsa"][0]})
    with pytest.raises(
        ClientRefused, match=r"lib/hub\.py seems to hold a GitHub token.*--include lib/hub\.py"
    ) as refused:
        pack_script(script)
    assert token not in str(refused.value)
    packed = pack_script(script, include=["./lib/hub.py", "id_rsa"])
    assert packed.files == ("id_rsa", "lib/hub.py", "train.py")
    with pytest.raises(ClientRefused, match=r"--include 'lib/no\.py': no such file would be packed"):
        pack_script(script, include=["lib/no.py"])


def test_a_folder_with_data_is_refused_with_its_largest_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, **{"data/a.bin": "x" * 3000, "data/b.bin": "x" * 2000, "weights": "x" * 2048})
    monkeypatch.setattr(pack, "BYTES_MAX", 4096)
    with pytest.raises(ClientRefused) as refused:
        pack_script(script)
    assert "too large to upload: 6.9 KiB in 4 files; at most 4 KiB" in str(refused.value)
    assert "The largest entries: data/ (4.9 KiB), weights (2 KiB), train.py (9 bytes)." in str(refused.value)
    (tmp_path / ".gitignore").write_text("data/\n")
    assert pack_script(script).files == ("train.py", "weights")


def test_a_sparse_file_of_gigabytes_is_refused_without_reading_it(tmp_path: Path) -> None:
    script = write(tmp_path)
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(20 * 1024**3)
    with pytest.raises(ClientRefused, match=r"20 GiB in 2 files; at most 32 MiB in 5,000 files"):
        pack_script(script)


@pytest.mark.parametrize(
    ("limit", "said", "entries"),
    [
        ("FILES_MAX", "6; at most 32 MiB in 4 files are allowed", "data/ (3), ./ (2), lib/ (1)"),
        ("SEEN_MAX", "more than 4 files and folders", "./ (4), "),
    ],
)
def test_too_many_files_are_refused_with_their_number_in_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str, entries: str
) -> None:
    small = {"data/a": "", "data/b/c": "", "data/b/d": "", "lib/e": ""}
    script = write(tmp_path, **small, weights="x" * 2000)
    monkeypatch.setattr(pack, limit, 4)
    with pytest.raises(ClientRefused, match=f"too many files to upload: {said}") as refused:
        pack_script(script)
    assert f"Most of them are in: {entries}" in f"{refused.value}, "
    assert "too large" not in str(refused.value)


@pytest.mark.parametrize(
    ("script", "root", "said"),
    [
        (".", None, "Name the script in it, for example 'train.py'."),
        ("jobs/own", None, "Name the script in it, for example 'jobs/own/fit.py'."),
        ("jobs/own", "jobs", "Name the script in it, for example 'own/fit.py'."),
        ("none", None, "Name the script to run: --script train.py"),
    ],
)
def test_a_folder_in_place_of_a_script_gets_the_script_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, root: str | None, said: str
) -> None:
    write(tmp_path, **{"bad.py": "", "jobs/own/fit.py": ""})
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClientRefused) as refused:
        pack_script(Path(script), None if root is None else Path(root))
    assert str(refused.value) == f"'{script}' is a folder. {said}"


def test_a_script_outside_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "train.py").touch()
    for script in (tmp_path / "train.py", tmp_path / "folder" / "../train.py"):
        with pytest.raises(ClientRefused, match=r"train.py' is not in the root "):
            pack_script(script, tmp_path / "folder")


def test_a_script_that_is_missing_or_ignored_or_no_python_is_refused(tmp_path: Path) -> None:
    script = write(tmp_path, **{".gitignore": "train.py\n", "run.sh": ""})
    for path, said in (
        (tmp_path / "none.py", "There is no file"),
        (tmp_path, "is a folder"),
        (tmp_path / "run.sh", "its name must end in .py"),
        (script, ".gitignore names it"),
    ):
        with pytest.raises(ClientRefused, match=said):
            pack_script(path)


def test_sizes_are_shown_to_one_digit() -> None:
    assert [size_text(size) for size in (0, 1, 1023, 1024, 1_500_000, 5 * 1024**4)] == [
        "0 bytes", "1 byte", "1,023 bytes", "1 KiB", "1.4 MiB", "5,120 GiB"
    ]  # fmt: skip
