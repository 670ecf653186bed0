"""Links in documents lead somewhere, every page is on the site, and README shows what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from muster.testing import RunningStack
from release.site import LINK, page_of
from tests.docs.commands import DOCUMENTS, ROOT

README = (ROOT / "README.md").read_text()
SHOWN = ROOT / "docs/first-gang.yaml"


def anchors_of(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in DOCUMENTS])
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it; `make docs` looks at the pages of the site again."""
    for _, target, anchor in LINK.findall(page.read_text()):
        path = page.parent / target
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor[1:] in anchors_of(path), target + anchor


def test_every_page_is_on_the_site() -> None:
    """Once, in a group of release/zensical.toml."""
    nav = tomllib.loads((ROOT / "release/zensical.toml").read_text())["project"]["nav"]
    pages = [page for group in nav for entries in group.values() for page in entries]
    sources = ["README.md", *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]
    assert sorted(pages) == sorted(map(page_of, sources))


def test_readme_is_short_and_its_job_becomes_a_gang() -> None:
    """It is the file that the command names."""
    assert len(README.splitlines()) <= 90
    assert SHOWN.read_text() in re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    namespace, job = yaml.safe_load_all(SHOWN.read_text())
    with RunningStack() as stack:
        stack.create(namespace)
        stack.create(job, "team-a")
        stack.until(
            "all pods are bound",
            lambda: sum(bool(pod["spec"].get("nodeName")) for pod in stack.all("Pod")) == 4,
        )
        (group,) = stack.all("PodGroup")
    assert re.fullmatch(r"train-main-[0-9a-f]{8}", group["metadata"]["name"])
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
