import pytest

from transceiver.events import error


def test_an_error_names_its_cause() -> None:
    assert error("code", "words", param="field", event_id="mine") == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "code": "code",
            "message": "words",
            "param": "field",
            "event_id": "mine",
        },
    }


@pytest.mark.parametrize("event_id", [None, 5, {}, ["mine"]])
def test_an_event_id_that_is_no_string_is_not_given_back(event_id: object) -> None:
    assert error("code", "words", event_id=event_id)["error"]["event_id"] is None
