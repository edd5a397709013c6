from transceiver.dialects.plain import Plain


def test_pings_and_echoes() -> None:
    plain = Plain()
    assert not plain.listens
    assert plain.received("ping 1234") == ([], ["pong 1234"])
    assert plain.received("hello") == ([], ["hello"])
    assert plain.received(b"ping") == ([], [b"ping"])
    assert plain.said({"type": "session.created"}) == plain.too_large() == plain.undelivered() == []
