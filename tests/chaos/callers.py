"""Who calls during a scenario: lean calls of one process, a Chromium and a Firefox talk page."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.browser import browser
from tests.clients.lean_driver import LeanDriver
from tests.lab.node import Node
from tests.lab.program import Program, ProgramError
from tests.lab.site import Site

BROWSERS = ("chromium", "firefox")
_LIFE_S = 3600.0


class Page:
    """A talk page with a call, in a browser that obeys. See tests/browser/attended.mjs."""

    def __init__(self, name: str, program: Program) -> None:
        self.name = name
        self.program = program
        self.first = self._read()

    @classmethod
    def start(cls, node: Node, name: str, url: str, recovers: bool) -> "Page":
        options = {"url": url, "browser": name, "recovers": recovers, "limit_s": _LIFE_S}
        argv = [str(browser.node()), str(browser.SCENARIOS / "attended.mjs"), json.dumps(options)]
        return cls(name, node.popen(f"browser-{name}", argv, piped=True))

    def ask(self, op: str) -> dict[str, Any]:
        """ "report", "mute" or "unmute"; what the browser's statistics say then."""
        assert self.program.process.stdin is not None
        self.program.process.stdin.write(json.dumps({"op": op}).encode() + b"\n")
        self.program.process.stdin.flush()
        return self._read()

    def stop(self) -> None:
        self.program.stop(patience_s=browser.CLEANUP_S)

    def _read(self) -> dict[str, Any]:
        assert self.program.process.stdout is not None
        line = self.program.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line or "{}")
        if not answer or "error" in answer:
            raise ProgramError(f"{self.name}: {answer.get('error')}\n{self.program.tail()}")
        return answer


class Callers:
    """All calls of a stage, up and talking."""

    def __init__(self, lean: LeanDriver, pages: list[Page]) -> None:
        self.lean = lean
        self.pages = pages

    def kinds(self) -> dict[int, str]:
        """SSRC of each call's caller, as of now: lean, chromium or firefox."""
        found = {call["ssrc"]: "lean" for call in self.lean.report()["calls"]}
        return found | {page.ask("report")["ssrc"]: page.name for page in self.pages}

    def reports(self) -> dict[str, Any]:
        """What the callers say themselves."""
        lean = self.lean.report()["calls"]
        return {
            "lean": {"states": sorted({call["state"] for call in lean}), "calls": len(lean)},
            **{page.name: page.ask("report") for page in self.pages},
        }

    def mute(self) -> None:
        self.lean.ask("mute")
        for page in self.pages:
            page.ask("mute")

    def unmute(self) -> None:
        self.lean.ask("unmute")
        for page in self.pages:
            page.ask("unmute")


@contextlib.contextmanager
def calling(site: Site, lean: int, browsers: bool, recovers: bool = True) -> Iterator[Callers]:
    """`lean` calls and with `browsers` one of each; all of them hang up at the end. Raises
    `ProgramError` when one does not come up."""
    names = BROWSERS if browsers else ()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        started = [
            pool.submit(Page.start, site.client, name, f"{site.base_url}/", recovers)
            for name in names
        ]
        pages = []
        for each in started:
            pages.append(page := each.result())
            stack.callback(page.stop)
        options = ("--calls", str(lean), "--every", "0.05")
        driver = LeanDriver.start(site.client, site.calls_url, site.client_host, *options)
        stack.enter_context(driver)
        failed = [call["error"] for call in driver.first["calls"] if call["error"]]
        if failed:
            raise ProgramError(f"{len(failed)} of {lean} lean calls failed: {failed[0]}")
        yield Callers(driver, pages)
