import pytest

from transceiver.backends.realtime.target import MAX_RETRY_S, MIN_RETRY_S, Target, retry_s


@pytest.mark.parametrize(
    ("url", "ours", "asked", "expected"),
    [
        ("wss://h/v1/realtime", None, None, "wss://h/v1/realtime"),
        ("wss://h/v1/realtime", "big", "small", "wss://h/v1/realtime?model=big"),
        ("wss://h/v1/realtime", None, "small", "wss://h/v1/realtime?model=small"),
        ("wss://h/v1/realtime", None, {"no": "text"}, "wss://h/v1/realtime"),
        ("wss://h/v1", None, "a&b=c/d", "wss://h/v1?model=a%26b%3Dc%2Fd"),
        ("wss://h:1/v1?api-version=1", "m", None, "wss://h:1/v1?api-version=1&model=m"),
        ("wss://h/v1?model=mine", None, "small", "wss://h/v1?model=mine"),
    ],
)
def test_the_model_is_in_the_address(
    url: str, ours: str | None, asked: object, expected: str
) -> None:
    assert Target(url, ours).address(asked) == expected


def test_headers() -> None:
    assert Target("wss://h").all_headers() == {}
    assert Target("wss://h", key="k").all_headers() == {"Authorization": "Bearer k"}
    beta = Target("wss://h", dialect="beta", headers={"api-key": "k"})
    assert beta.all_headers() == {"OpenAI-Beta": "realtime=v1", "api-key": "k"}
    own = Target("wss://h", key="k", headers={"Authorization": "Basic x"})
    assert own.all_headers() == {"Authorization": "Basic x"}


def test_shows_no_secret() -> None:
    target = Target("wss://h:5/v1?api-key=hunter2", key="hunter2", headers={"x": "hunter2"})
    assert "hunter2" not in repr(target)
    assert target.endpoint == "h:5"
    assert Target("wss://[::1]/v1").endpoint == "[::1]:443"
    assert target.is_secure
    assert not Target("ws://h").is_secure


def test_a_short_outage_is_tried_often_and_a_long_one_seldom() -> None:
    assert [retry_s(outage, 0.0) for outage in (0, 8, 32, 96, 1000)] == [0.5, 0.5, 2.0, 6.0, 8.0]
    assert [retry_s(outage, 1.0) for outage in (0, 1000)] == [0.625, 8.0]
    every = [retry_s(o / 10, r / 10) for o in range(2000) for r in range(11)]
    assert (min(every), max(every)) == (MIN_RETRY_S, MAX_RETRY_S)
