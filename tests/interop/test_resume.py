"""A stock client carries its call on: a new session of @openai/agents-realtime, with the URL of a
resume, has the history of the one whose transceiver was killed."""

import contextlib
import dataclasses
import signal
from collections.abc import Iterator

import pytest

from relayctl.wire.address import render
from tests.browser import browser
from tests.interop.install import HERE, unavailable
from tests.interop.stage import PREFIX, Stage
from tests.lab import namespace
from tests.lab.fleet import FIRST, SECOND
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, Lab

WORDS = ["one", "two", "one"]
LATER = "four"


@pytest.fixture
def services() -> Iterator[Services]:
    """Two transceivers with parrots, and a Redis."""
    reason = namespace.unavailable() or unavailable() or browser.unavailable("chromium")
    if reason is not None:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(f"{PREFIX}a-", transceivers=2))
        redis = stack.enter_context(RedisServer(lab.signaling, host=SIGNALING_INNER))
        site = dataclasses.replace(in_lab(lab), host=lab.client)
        services = Services(site, datapath="socket", backend="parrot", redis=redis.url)
        stack.enter_context(services)
        services.start_another("another", lab.transceivers[1], SECOND, CLUSTER)
        yield services
        for name in ("transceiver", "another"):
            if services.programs[name].stop() == -signal.SIGKILL:
                del services.programs[name]  # which is no fault of its own


def test_a_new_session_has_the_history_of_the_old_one(services: Services) -> None:
    programs = services.programs
    options = {
        "browser": "chromium",
        "page": "agents_resume",
        "files": str(Stage().pages),
        "url": services.site.base_url,
        "key": "ek_any",
        "words": WORDS,
        "after": LATER,
        "owners": {
            render(FIRST): programs["transceiver"].pid,
            render(SECOND): programs["another"].pid,
        },
    }
    report = browser.run(services.site.client, "resume", options, 90, HERE)
    first, second = report["calls"]
    said = [[role, text] for text in WORDS for role in ("user", "assistant")]
    assert first != second
    assert report["before"] == said
    assert report["after"] == said
    assert report["end"] == [*said, ["user", LATER], ["assistant", LATER]]
    assert (report["errors"], report["faults"]) == ([], [])
