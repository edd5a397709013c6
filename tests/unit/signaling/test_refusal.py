from signaling.refusal import MAX_MESSAGE, STATUS, Code, Refused


def test_every_code_has_a_status() -> None:
    assert set(STATUS) == set(Code)


def test_body_has_the_four_members() -> None:
    refused = Refused(Code.BAD_SDP, "line 3", param="sdp")
    assert refused.status == 400
    assert refused.body() == {
        "error": {
            "type": "invalid_request_error",
            "code": "bad_sdp",
            "message": "line 3",
            "param": "sdp",
        }
    }


def test_retry_after_only_where_it_is_set() -> None:
    assert Refused(Code.ALL_FULL, "", retry_after_s=7).headers() == {"Retry-After": "7"}
    assert Refused(Code.OWNER_GONE, "").headers() == {}


def test_a_foreign_message_is_cut() -> None:
    assert len(str(Refused(Code.BAD_SDP, "x" * 5000))) == MAX_MESSAGE
