"""Headless Chromium, for the tests of the page and its pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)
HOW_TO_GET = "Chromium is not installed; on Debian: apt-get install chromium chromium-driver"
SECONDS = 30.0


class Browser:
    """A page in Chromium."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str, *, dark: bool = False) -> None:
        """Open a page, by day or by night; what an earlier page complained of or asked for is forgotten."""
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(url)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        return self.driver.execute_script(f"return {script}")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: self.run(script), script)

    def press(self, *keys: str) -> None:
        """Press keys, and wait until the page has drawn what they did."""
        ActionChains(self.driver).send_keys(*keys).perform()
        self.until("!view.dirty.size")

    def text(self, selector: str) -> str:
        """Return the text of an element as it is shown."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def picture(self, path: Path) -> None:
        """Write what is seen to a PNG."""
        self.until("!view.dirty.size")
        assert self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """Return the errors and warnings in the console since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requested(self) -> set[str]:
        """Return the URLs that were asked for since the last call."""
        log = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = (
            one["params"]["request"]["url"] for one in log if one["method"] == "Network.requestWillBeSent"
        )
        return {url for url in sent if not url.startswith("data:")}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium with an empty profile; LookupError says how to install it."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        raise LookupError(HOW_TO_GET)
    with TemporaryDirectory(prefix="muster-chromium-", ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = program
        for argument in (*ARGUMENTS.split(), f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        started = Chrome(options=options, service=Service(driver))
        size = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        started.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            yield Browser(started)
        finally:
            started.quit()
