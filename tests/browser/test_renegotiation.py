"""A later offer that restarts no ICE: browsers take our answer, and the audio goes on."""

from itertools import pairwise

from tests.browser import browser
from tests.lab.services import Services


def test_a_video_section_is_rejected_and_the_audio_has_no_gap(
    services: Services, browser_name: str
) -> None:
    options = {"url": f"{services.site.base_url}/", "browser": browser_name, "settle_s": 2}
    report = browser.run(services.site.client, "renegotiation", options, limit_s=60)
    assert report["heard"]
    assert report["statuses"] == [200, 200]
    looks = report["looks"]
    kinds = [[section.split()[0] for section in look["answer"]["sections"]] for look in looks]
    assert kinds == [kinds[0], [*kinds[0], "video"], [*kinds[0], "video"]]
    for look in looks[1:]:
        assert look["answer"]["sections"][-1] == "video 0"
        assert look["answer"]["ufrags"] == looks[0]["answer"]["ufrags"]
        assert look["call_id"] == looks[0]["call_id"]
        assert look["connection"] == "connected"
        assert look["channel"] in ("open", None)
    for before, after in pairwise(looks):
        assert after["received"] - before["received"] > 70  # of 100 in 2 s
    assert looks[-1]["far"]["lost"] == looks[-1]["lost"] == 0
