import pytest
import redis

from tests.lab.program import ProgramError
from tests.lab.redis_server import RedisServer


def test_it_is_killed_hung_emptied_and_started_again() -> None:
    with RedisServer(password="pass-word") as server:
        client = redis.Redis.from_url(server.url, socket_timeout=0.5)
        client.set("key", "value")
        with server.client() as local:
            assert local.get("key") == "value"
        server.flush()
        assert client.get("key") is None
        server.hang()
        with pytest.raises(redis.TimeoutError):
            client.get("key")
        server.go_on()
        client.set("key", "value")
        server.kill()
        with pytest.raises(redis.ConnectionError):
            client.get("key")
        server.start()
        assert client.get("key") is None
        client.close()
        url = server.url
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(url).ping()


def test_without_the_password_nobody_gets_in() -> None:
    with RedisServer(password="pass-word") as server:
        client = redis.Redis.from_url(server.url.replace(":pass-word@", ""))
        with pytest.raises(redis.AuthenticationError):
            client.get("key")
        client.close()


def test_where_there_is_no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ProgramError, match="apt-get install redis-server"), RedisServer():
        pass
