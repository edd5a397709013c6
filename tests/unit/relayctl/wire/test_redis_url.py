import pytest

from relayctl.wire.redis_url import RedisUrlError, parse


@pytest.mark.parametrize("url", ["redis://h", "rediss://u:p@h:1/2?ssl_ca_certs=/x", "unix:///s"])
def test_one_server_is_left_as_it_is(url: str) -> None:
    assert parse(url)[:2] == ("single", url)


def test_sentinels_name_their_master() -> None:
    place = parse("rediss+sentinel://u:p@a:1,[::1],c:3/main/4?ssl_cert_reqs=none")
    assert place.kind == "sentinel"
    assert place.master == "main"
    assert place.nodes == (("a", 1), ("::1", 26379), ("c", 3))
    assert place.plain == "rediss://u:p@a:1/4?ssl_cert_reqs=none"


def test_a_cluster_has_nodes() -> None:
    place = parse("redis+cluster://:p@a,b:2")
    assert place == ("cluster", "redis://:p@a/0", (("a", 6379), ("b", 2)), "")


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "redis://",
        "redis://:hidden@h:0",
        "redis://:hidden@h:port",
        "unix://",
        "redis+sentinel://:hidden@a:1",
        "redis+sentinel://:hidden@a:x/main",
        "redis+cluster://:hidden@a,/",
        "redis+cluster://:hidden@a/1",
        "redis+cluster://:hidden@[a",
    ],
)
def test_what_names_no_redis_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(RedisUrlError) as caught:
        parse(url)
    assert "hidden" not in str(caught.value)
