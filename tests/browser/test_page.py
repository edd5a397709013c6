"""The talk page itself: by keyboard alone, for eyes and ears that differ, and when things go wrong.

Judges: axe-core for accessibility, the browser's own console and content security policy.
"""

import dataclasses
import hashlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from signaling.access.api_keys import ApiKey
from tests.browser import browser
from tests.lab import service_config
from tests.lab.services import Services, wait_for
from tests.lab.site import LoopbackPlace

PORTS = 26478
KEYED_PORT = PORTS + 9  # of a second signaling, which asks for a key
KEY = "fk_test-of-the-page"
PHASES = 7


@pytest.fixture(scope="module")
def parrot() -> Iterator[Services]:
    """Without privileges, on 127.0.0.1."""
    reason = browser.unavailable("chromium")
    if reason is not None:
        pytest.skip(reason)
    with (
        LoopbackPlace("fb-page", PORTS) as place,
        Services(place.site(), datapath="socket", backend="parrot") as services,
    ):
        yield services


@pytest.fixture(scope="module")
def keyed_url(parrot: Services) -> str:
    """Of a signaling server like the parrot's, but with a key."""
    site = parrot.site
    listen = f"127.0.0.1:{KEYED_PORT}"
    key = ApiKey("page", hashlib.sha256(KEY.encode()).digest(), offers_per_minute=0)
    setup = dataclasses.replace(parrot.setup, api_keys=(key,))
    keys_file = site.directory / "route.keys"
    text = service_config.signaling(site, setup, keys_file, listen=listen, vip=site.vip)
    config = parrot.write("signaling-keyed.toml", text)
    command = [sys.executable, "-m", "signaling", "serve", "--config", str(config)]
    program = site.signaling.popen("signaling-keyed", command)
    wait_for(program, site.signaling, f"http://{listen}/readyz")
    return f"http://{listen}/"


def chromium(services: Services, scenario: str, url: str = "", **options: Any) -> dict[str, Any]:
    url = url or f"{services.site.base_url}/"
    options = {"browser": "chromium", "loopback": True, "url": url, **options}
    return browser.run(services.site.client, scenario, options, limit_s=60)


def test_a_call_by_keyboard_alone(services: Services, browser_name: str) -> None:
    options = {
        "url": f"{services.site.base_url}/",
        "browser": browser_name,
        "rules": browser_name == "chromium",  # they judge a document, and it is the same one
    }
    report = browser.run(services.site.client, "keyboard", options, limit_s=90)
    idle, call, energy, end = (report[part] for part in ("idle", "call", "energy", "end"))
    assert report["heard"]
    assert (report["faults"], report["complaints"], report["violations"]) == ([], [], [])
    assert (idle["unfit"], call["unfit"], report["narrow"]["unfit"]) == ([], [], [])
    assert (report["narrow"]["overflow"], end["overflow"]) == (0, 0)

    names = [stop["name"] for stop in idle["tabs"]]
    assert names[0] == "talk"
    assert names.index("hold") < names.index("transcribe") < names.index("events-filter")
    assert all(stop["ring"] for stop in idle["tabs"] + call["tabs"])
    order = [stop["name"] for stop in call["tabs"]]
    assert order[:2] == ["mute", "hangup"]
    assert order.index("transcript") < order.index("words") < order.index("events-pause")

    assert (call["label"], call["relay"]) == ("Listening", "in the kernel")
    assert call["ingress"] == services.site.instance
    assert call["steering"] != "not told"
    assert len(call["phases"]) == PHASES
    assert all(took.endswith(" ms") for took in call["phases"])
    assert call["plots"][0].startswith("Round trip: now ")
    assert {"page.calling", "page.connected", "session.created"} <= set(call["types"])

    assert energy["spoken"] > 0
    assert energy["muted"] < 0.01 * energy["spoken"]
    assert report["label"] == "Muted"
    assert (end["state"], end["far"], end["focus"]) == ("idle", "hangup", "talk")


def test_a_conversation_is_shown_and_can_be_taken_part_in(parrot: Services) -> None:
    report = chromium(parrot, "conversation")
    asked = "Is <b>anybody</b> there?"
    assert report["heard"]
    assert report["faults"] == []
    turns = [(turn["who"], turn["heard"]) for turn in report["written"]]
    assert {("You", asked), ("Answer", asked)} <= set(turns)  # beeps may be turns, too
    assert report["said"] == f"Answer: {asked}"  # for who listens to the page

    kinds = {(event["type"], event["direction"]) for event in report["both"]}
    assert {
        ("session.created", "received"),
        ("conversation.item.create", "sent"),
        ("response.create", "sent"),
        ("response.done", "received"),
        ("page.connected", "page"),
    } <= kinds
    assert report["opened"]["response"]["object"] == "realtime.response"
    shown = {event["type"] for event in report["filtered"]}
    assert shown == {"response.output_text.delta", "response.output_text.done"}
    assert report["paused"] == report["filtered"]
    assert report["bounded"] == 500
    assert report["interrupted"] == {
        "who": "Answer",
        "heard": "One two",
        "unheard": " three four",
        "note": "interrupted after 1.2 s",
    }

    assert report["complaints"] == [False, True]

    devices = report["devices"]
    assert devices["other"] != devices["before"]
    assert devices["again"] == devices["other"]  # remembered
    assert report["left"] == "hangup"  # by whoever left the page
    assert report["hold"] == {"released": False, "held": True, "again": False}


@pytest.mark.parametrize(
    ("options", "says", "step"),
    [
        ({"microphone": "refused"}, "was refused", "Allow it"),
        ({"microphone": "none"}, "No microphone was found", "Plug one in"),
    ],
)
def test_a_missing_microphone_is_explained(
    parrot: Services, options: dict[str, Any], says: str, step: str
) -> None:
    report = chromium(parrot, "no_microphone", **options)
    assert says in report["notice"]
    assert step in report["steps"][0]
    assert (report["state"], report["can_talk"]) == ("idle", True)
    assert (report["unfit"], report["faults"]) == ([], [])


def test_an_insecure_page_says_where_a_secure_one_is(services: Services) -> None:
    url = f"{services.site.base_url}/"
    options = {"url": url, "browser": "chromium", "insecure": True}
    report = browser.run(services.site.client, "no_microphone", options, limit_s=60)
    assert url.rstrip("/") in report["notice"]
    assert "http://localhost:8080" in report["steps"][0]
    assert "--tls-self-signed" in report["steps"][1]
    assert (report["state"], report["can_talk"]) == ("blocked", False)
    assert (report["unfit"], report["faults"]) == ([], [])


def test_a_key_is_asked_for_and_kept_for_the_tab_only(parrot: Services, keyed_url: str) -> None:
    report = chromium(parrot, "key", keyed_url, key=KEY, wrong="fk_wrong")
    kept = report["kept"]
    assert report["missing"] == {"notice": "This server asks for a key.", "unfit": []}
    assert "key" in report["wrong"]["notice"]
    assert report["heard"]
    assert report["reason"] == "hangup"  # the key went with that, too
    assert kept["for_the_tab"] == [KEY]
    assert KEY not in kept["for_good"]
    assert not [url for url in [*report["urls"], kept["address"]] if "fk_" in url]
    assert report["faults"] == []
