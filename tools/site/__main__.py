"""Write the pages of docs/ as a site with search into build/site/VERSION, and llms.txt beside them: `make site`.

Any warning of MkDocs ends it, such as a broken link. The folders of other versions in build/site stay.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib

from packaging.version import Version

from tools.site.pages import INDEX, copy_pages, llms_txt, read_sections
from trainmaster.resources import ROOT
from trainmaster.version import VERSION

SITE, SOURCE = ROOT / "build" / "site", ROOT / "build" / "site-source"
_REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">Trainmaster</a>\n'


def build_site() -> int:
    """Build this version's folder with the MkDocs of this Python, and return its exit status."""
    summary = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages, site, sections = SOURCE / "pages", SITE / VERSION, read_sections(ROOT)
    copy_pages(ROOT, pages)
    (pages / "llms.txt").write_text(llms_txt(sections, summary))
    nav = [{heading: [{title: path} for title, path, _ in listed]} for heading, listed in sections.items()]
    here = {"docs_dir": str(pages), "site_dir": str(site), "nav": [{"Contents": INDEX}, *nav]}
    settings = SOURCE / "mkdocs.json"
    settings.write_text(json.dumps({"INHERIT": str(ROOT / "tools/site/mkdocs.yml"), **here}))  # JSON is YAML
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]
    done = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    shutil.copytree(pages, site, dirs_exist_ok=True)  # the Markdown that llms.txt links to
    return done.returncode


def write_versions() -> None:
    """List the versions, the newest first, and let the site's root and its folder `latest` lead to the newest."""
    versions = sorted((path.parent.name for path in SITE.glob("*/404.html")), key=Version, reverse=True)
    listed = [{"version": each, "title": each, "aliases": []} for each in versions]
    (SITE / "versions.json").write_text(json.dumps(listed))
    for page, to in (("index.html", ""), ("latest/index.html", "../")):
        (SITE / page).parent.mkdir(exist_ok=True)
        (SITE / page).write_text(_REDIRECT.format(to=f"{to}{versions[0]}/"))


if __name__ == "__main__":
    if status := build_site():
        sys.exit(status)
    write_versions()
    print(f"The site: {SITE.relative_to(ROOT) / 'index.html'}")
