import pytest

from relayctl.wire.settings import SettingsError, load
from signaling.config import ENVIRONMENT, SignalingConfig
from tests.unit.signaling.fake_transceiver import CONFIG, configuration


def test_the_documented_file() -> None:
    config = configuration(
        'listen = "127.0.0.1:8080"\ncors_origins = ["https://a.example"]' + CONFIG
    )
    assert config.listen == ("127.0.0.1", 8080)
    assert config.transceivers[0].endpoint == ("10.2.0.2", 5000)
    assert config.ingresses[0].ingress().vips == (("203.0.113.10", 3478),)
    assert config.routing().owner(("10.2.0.2", 5000)) == 7
    assert config.tls_files is None


def test_workers_are_transceivers_on_ports_in_a_row() -> None:
    config = configuration(CONFIG.replace('5000"', '5000"\nworkers = 3'))
    assert config.endpoints == tuple(("10.2.0.2", 5000 + number) for number in range(3))


def test_every_worker_has_to_be_in_a_cluster_and_stand_once() -> None:
    text = CONFIG.replace('5000"', '5000"\nworkers = 3')
    with pytest.raises(SettingsError, match=r"'10\.2\.0\.2:5002': is in no cluster; add .*`ports`"):
        configuration(text + "ports = [5000, 5001]")
    again = '[[transceiver]]\nendpoint = "10.2.0.2:5002"\n'
    with pytest.raises(SettingsError, match=r"'10\.2\.0\.2:5002': stands 2 times"):
        configuration(text.replace("[[ingress]]", f"{again}[[ingress]]"))


def test_an_inherited_socket() -> None:
    assert configuration('listen = "fd:3"' + CONFIG).listen == 3


def test_environment_goes_over_the_file() -> None:
    environ = {f"{ENVIRONMENT}LISTEN": "[::1]:80"}
    config = load(SignalingConfig, toml=CONFIG, environ=environ, prefix=ENVIRONMENT)
    assert config.listen == ("::1", 80)


def test_the_control_token_is_not_shown() -> None:
    assert "control-token" not in repr(configuration())


def test_transceivers_on_loopback_need_no_control_token() -> None:
    text = CONFIG.replace('control_token = "control-token-of-the-tests"', "")
    assert "control_token" not in text
    with pytest.raises(SettingsError, match=r"^control_token: missing; 10\.2\.0\.2"):
        configuration(text)
    local = text.replace("10.2.0.", "127.0.0.")
    assert configuration(local).control_token == ""


def test_a_self_signed_certificate_lies_in_the_state_directory() -> None:
    files = configuration('tls_self_signed = ["192.0.2.1"]\nstate_dir = "/s"' + CONFIG).tls_files
    assert files is not None
    assert (str(files.cert), str(files.key)) == ("/s/signaling.crt", "/s/signaling.key")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (CONFIG.replace("10.2.0.2:5000", "10.9.0.2:5000"), "10.9.0.2:5000': is in no cluster"),
        (CONFIG + '[[cluster]]\nid = 7\nallow = ["10.3.0.0/24"]', "cluster.id = '7': stands 2"),
        (CONFIG.replace("http://10.2.0.1:9100", "10.2.0.1:9100"), "no base URL"),
        (CONFIG.replace('vips = ["203.0.113.10:3478"]', "vips = []"), r"ingress\[0\].vips"),
        ('listen = "8080"' + CONFIG, "'8080' is no address"),
        ('tls_self_signed = ["a b"]' + CONFIG, "'a b' is no host name"),
        ('liste = "x"' + CONFIG, "liste: unknown key"),
        ('trusted_proxies = ["::/0"]' + CONFIG, "give the addresses of your proxies"),
        ('tls_self_signed = ["a"]\ntls = {cert = "/c", key = "/k"}' + CONFIG, "keep one of them"),
        (CONFIG.replace("control-token-of-the-tests", "a b"), "control_token = <hidden>"),
        (CONFIG.replace("/nowhere/route.keys", "route.keys"), "write the whole path"),
    ],
)
def test_faults_name_key_and_mend(text: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        configuration(text)
