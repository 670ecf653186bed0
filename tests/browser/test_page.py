"""The page of `muster view` and `muster replay --html` in headless Chromium: `make browser`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from muster.cli.page import recorded_page
from muster.local.stories.story import STORIES
from muster.replay.files import read_events
from muster.replay.snapshots import read_snapshots
from muster.replay.timeline import Timeline, recorded
from tests.support import builders as b
from tests.support.chromium import Browser, chromium
from tests.support.processes import running

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

RECORDINGS = Path(__file__).parents[1] / "replays/recordings"
FUNCTIONS = ("create_workload", "create_pod_groups", "patch_pods", "emit_conditions")
HOSTILE = "</script><img src=x onerror=alert(1)>"
STATE = "(known.rows.get(view.gang) || {}).state"


@pytest.fixture(name="browser", scope="module")
def _browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(name="page")
def _page(browser: Browser, tmp_path: Path) -> Browser:
    """The page of the recording of a gang that does not fit, as a file."""
    events = read_events(RECORDINGS / "5-does-not-fit.resource.jsonl.gz")
    moments = read_snapshots([RECORDINGS / "5-does-not-fit.objects.yaml.gz"])
    return opened(browser, tmp_path, recorded(events, moments))


def opened(browser: Browser, folder: Path, timeline: Timeline) -> Browser:
    """Open a timeline as a file."""
    path = folder / "page.html"
    path.write_text(recorded_page(timeline, "a recording"))
    browser.open(path.as_uri())
    browser.until("!view.dirty.size")
    return browser


@pytest.mark.parametrize("story", STORIES)
def test_the_page_of_a_story(browser: Browser, story: str) -> None:
    """Live: its gang is placed on nodes, and each function stands between its event and its writes."""
    with running("view", "--story", story) as process:
        url = process.line("in a browser").split()[1]
        browser.open(url)
        browser.until(f"{STATE} === 'Placed'")
        browser.until("known.entries.some(one => one.run && one.run.step === 'emit_conditions')")
        browser.until("document.querySelectorAll('#matrix .cell:not(.none)').length")
        runs = browser.run("known.entries.filter(one => one.run).map(one => one.run.step)")
        assert list(dict.fromkeys(runs))[:4] == list(FUNCTIONS)
        browser.run(
            "(toStart(), moveTo(known.entries.findIndex(one => (one.run || {}).step === 'patch_pods') + 1))"
        )
        for text in ("event", "patch_pods", "write", "gate removed"):
            browser.until(f"document.querySelector('.chain')?.innerText.includes('{text}')")
        assert browser.complaints() == []
        assert {address for address in browser.requested() if not address.startswith(url)} == set()
        process.end()
        browser.until("document.querySelector('.live.lost')")


def test_a_recording_is_scrubbed_with_the_keyboard(page: Browser) -> None:
    """From nothing to refused, with the reason in words, to placed; a step forth and back is none."""
    page.press(Keys.HOME)
    assert page.text("#moment").startswith("beginning")
    states = []
    for _ in range(32):
        page.press(Keys.ARROW_RIGHT)
        states.append(page.run(STATE))
        if states[-1] == "Refused" and "would fit" in page.text("#detail"):
            assert "no room" in page.text(".why")
            assert page.text("#totals").split()[1] == "Refused"
    assert list(dict.fromkeys(filter(None, states))) == ["Waiting", "Refused", "Placed"]
    rows = "JSON.stringify([...known.rows].sort())"
    before = page.run(rows)
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.run(rows) == before
    assert page.complaints() == []
    assert {url for url in page.requested() if not url.startswith("file:")} == set()


def test_a_change_shows_what_it_changed(page: Browser) -> None:
    """The removed gate, and the function that removed it, between its event and what came next."""
    page.run("moveTo(known.entries.findIndex(one => one.by === 'muster-patch-pods') + 1)")
    page.until("document.querySelector('tr.minus')")
    assert "spec.schedulingGates" in page.text("#change")
    assert [
        text for text in ("event", "function", "write", "next event") if text not in page.text(".chain")
    ] == []


def test_day_and_night_and_the_eyes_of_a_screen_reader(page: Browser) -> None:
    """The theme follows the system and a key; every control has a name; states have signs, not colours."""
    back = "getComputedStyle(document.body).backgroundColor"
    day = page.run(back)
    page.press("t")
    assert page.run(back) != day
    controls = page.driver.find_elements(By.CSS_SELECTOR, "button, input, [role=listbox], [role=option]")
    assert [
        one.get_attribute("outerHTML") for one in controls if one.is_displayed() and not one.accessible_name
    ] == []
    assert page.text(".gang .sign") in "✔…✘!■"
    page.open(page.driver.current_url, dark=True)
    assert page.run(back) != day


def test_nothing_to_show_is_said(browser: Browser, tmp_path: Path) -> None:
    """No gang, no change; and a filter that nothing fits."""
    opened(browser, tmp_path, Timeline())
    assert "No gangs" in browser.text("#gangs")
    assert "Nothing happened yet" in browser.text("#entries")
    opened(browser, tmp_path, Timeline([b.a_job(), b.a_pod_group()]))
    browser.press("/", *"zebra")
    assert "Nothing fits" in browser.text("#gangs")
    browser.press(Keys.ESCAPE)
    assert "job/llama" in browser.text("#gangs")


def test_what_a_tenant_writes_is_text(browser: Browser, tmp_path: Path) -> None:
    """Never markup or script."""
    refusal = b.with_condition("muster.dev/PodGroupsScheduled", "False", "Unschedulable", HOSTILE)
    timeline = Timeline([b.a_job(), b.a_pod_group()])
    timeline.add_change(1.0, "MODIFIED", b.a_job(refusal))
    timeline.publish()
    opened(browser, tmp_path, timeline)
    assert HOSTILE in browser.text(".why")
    assert HOSTILE in browser.text("#change")
    assert browser.run("document.images.length") == 0
    assert browser.complaints() == []


def test_a_thousand_pods_without_stutter(browser: Browser, tmp_path: Path) -> None:
    """A change of one of a thousand pods is shown in a fraction of the time in which one would notice."""
    name = "llama-main-33333333"
    pods: list[Any] = [b.a_pod(b.a_job(), index, b.stamped(name)) for index in range(1000)]
    for index, pod in enumerate(pods):
        pod["metadata"] |= {"name": f"llama-{index}", "uid": f"uid-{index}"}
    timeline = Timeline([b.a_job(pods=1000), b.a_pod_group(name, min_count=1000), *pods])
    for index, pod in enumerate(pods[:300]):
        timeline.add_change(
            float(index), "MODIFIED", {**pod, "spec": {**pod["spec"], "nodeName": f"node-{index % 100}"}}
        )
        timeline.settle()
    timeline.publish()
    opened(browser, tmp_path, timeline)
    browser.run("(moveTo(0), 1)")
    browser.until("!view.dirty.size")
    took = browser.run(
        """(() => {
          const times = [];
          for (let at = 1; at <= 200; at++) {
            const began = performance.now();
            moveTo(at);
            for (const part of [...view.dirty]) DRAW[part]();
            document.body.offsetHeight;
            times.push(performance.now() - began);
          }
          return times.sort((a, b) => a - b)[100];
        })()"""
    )
    assert browser.run("document.querySelectorAll('#detail .pod').length") >= 1000
    assert took < 100, took
