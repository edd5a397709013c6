import pytest

from relayctl.wire.settings import SettingsError
from signaling.fleet.location import Place
from tests.unit.signaling.fake_transceiver import CONFIG, configuration

PLACED = CONFIG.replace(
    'name = "relay-a"', 'name = "relay-a"\nclusters = [7]\nlatitude = 52.5\nlongitude = 13.4'
).replace("id = 7", 'id = 7\nregion = "EU-west"')


def test_places_regions_and_routes() -> None:
    config = configuration(PLACED + '[default_location]\nregion = "eu-west"\n')
    (ingress,) = (section.ingress() for section in config.ingresses)
    assert ingress.place == Place(52.5, 13.4)
    assert ingress.reaches(7)
    assert not ingress.reaches(8)
    assert config.places == {7: Place(region="eu-west")}
    assert config.regions == {"eu-west"}
    assert config.default_location.place == Place(region="eu-west")


def test_an_ingress_reaches_every_cluster_unless_told_otherwise() -> None:
    (section,) = configuration().ingresses
    assert section.ingress().reaches(65535)


@pytest.mark.parametrize(
    ("added", "url"),
    [
        ("", "http://10.2.0.1:9100/readyz"),
        ('health = "https://relay.example/up?x=1"', "https://relay.example/up?x=1"),
    ],
)
def test_the_health_url(added: str, url: str) -> None:
    text = CONFIG.replace('name = "relay-a"', f'name = "relay-a"\n{added}')
    assert configuration(text).ingresses[0].ingress().health == (url,)


def test_without_admin_an_ingress_is_not_asked() -> None:
    text = CONFIG.replace('admin = "http://10.2.0.1:9100"', "")
    assert configuration(text).ingresses[0].ingress().health == ()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("latitude = 52.5", "", r"latitude: missing; a place needs both"),
        ("latitude = 52.5", "latitude = 90.5", r"ingress\[0\].latitude = 90.5"),
        ("longitude = 13.4", "longitude = nan", r"ingress\[0\].longitude = nan: is no finite"),
        ("EU-west", "eu west", r"'eu west': is no region"),
        ("clusters = [7]", "clusters = [7, 8]", r"ingress.clusters = 8: of ingress 'relay-a'"),
        ("clusters = [7]", 'health = "relay/readyz"', "'relay/readyz': is no URL; write it as"),
        ('"relay-a"', '"relay a"', r"ingress\[0\].name = 'relay a'"),
    ],
)
def test_faults_name_key_and_mend(old: str, new: str, fault: str) -> None:
    assert old in PLACED
    with pytest.raises(SettingsError, match=fault):
        configuration(PLACED.replace(old, new, 1))


@pytest.mark.parametrize(
    "url",
    ["redis://127.0.0.1", "redis://:pw@redis:6379/0", "rediss://r.example/1", "unix:///run/r.sock"],
)
def test_the_redis_url_is_a_secret(url: str) -> None:
    config = configuration(f'redis = "{url}"' + CONFIG)
    assert config.redis == url
    assert url not in repr(config)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:6379", "http://:hush@h", "redis://", "redis://:hush@h:x", "unix://", ""]
)
def test_what_is_no_redis_url(url: str) -> None:
    with pytest.raises(SettingsError, match="redis = <hidden>: is no Redis; write") as caught:
        configuration(f'redis = "{url}"' + CONFIG)
    assert "hush" not in str(caught.value)


def test_networks_of_proxies() -> None:
    with pytest.raises(SettingsError, match=r"trusted_proxies\[0\].*write '10\.0\.0\.0/8'"):
        configuration('trusted_proxies = ["10.0.0.1/8"]' + CONFIG)
