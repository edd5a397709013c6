"""The page shows what the other side says of itself, and does not call back whoever hung up."""

from tests.browser import browser
from tests.lab.services import Services


def test_who_has_hung_up_is_not_called_again(services: Services, browser_name: str) -> None:
    options = {"url": f"{services.site.base_url}/", "browser": browser_name}
    report = browser.run(services.site.client, "ends", options, limit_s=60)
    assert report["heard"]
    assert report["faults"] == []
    assert report["speaking"]["label"] == "Speaking"
    assert "speaking" in report["speaking"]["status"]
    assert report["listening"]["label"] == "Listening"
    assert "<b>bold</b>" in report["notice"]["text"]
    assert report["notice"]["elements"] == 0
    assert report["calls"] == []
    assert report["end"] == {
        "state": "idle",
        "status": "The other side has hung up.",
        "call_id": None,
    }
