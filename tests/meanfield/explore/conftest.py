"""A headless Chromium, and pages of the explorer in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
import xarray as xr

import meanfield

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ADDRESS_WRITTEN = 300  # milliseconds, after which the address holds the latest settings
PATIENCE = 120_000  # milliseconds: κ of the least action takes long where the machine is busy


class Explorer:
    """A page in the browser, with what it logged and asked of the network."""

    def __init__(self, browser: Any, file: Path, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.file, self.complaints, self.requests = file, [], []
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def show(self, **settings: int) -> Explorer:
        """Open the page with these settings, and wait until all that follows from them is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.file.as_uri()}#{urlencode(settings)}")
        return self.settled()

    def settled(self) -> Explorer:
        self.page.wait_for_selector("#law-says:not(:empty)", state="attached")
        self.page.wait_for_selector(".waiting", state="detached")
        return self

    def waits(self, condition: Callable[[], bool]) -> None:
        """Wait for it; the page's own rules forbid to evaluate texts, as Playwright would."""
        for _ in range(PATIENCE // 50):
            if condition():
                return
            self.page.wait_for_timeout(50)
        pytest.fail("what was waited for did not come")

    def number(self, name: str) -> float:
        """A number of the sentences, with all its digits."""
        return float(self.page.locator(f"[data-name={name}]").get_attribute("value"))

    def numbers(self, prefix: str) -> list[float]:
        """All numbers whose name begins so, in the order of the text."""
        found = self.page.locator(f"[data-name^={prefix}]").all()
        return [float(one.get_attribute("value")) for one in found]

    def text(self, identity: str) -> str:
        return self.page.locator(f"#{identity}").inner_text()

    @property
    def settings(self) -> dict[str, int]:
        """The settings in the address."""
        self.page.wait_for_timeout(ADDRESS_WRITTEN)
        address = self.page.evaluate("location.hash")
        return {name: float(values[0]) for name, values in parse_qs(address.lstrip("#")).items()}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright drives the browser")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def gallery() -> xr.Dataset:
    return meanfield.datasets.smollm2()


@pytest.fixture(scope="session")
def gallery_page(gallery: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return meanfield.explore(gallery, tmp_path_factory.mktemp("explorer") / "gallery.html")


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens a page: opened(file, width=…, dark=…). At the end none may have logged anything."""
    pages: list[Explorer] = []

    def open_page(file: Path, width: int = 1440, dark: bool = False) -> Explorer:
        scheme = "dark" if dark else "light"
        pages.append(Explorer(browser, file, viewport={"width": width, "height": 900}, color_scheme=scheme))
        return pages[-1]

    yield open_page
    complaints = [one for page in pages for one in page.complaints]
    for page in pages:
        page.context.close()
    assert complaints == []
