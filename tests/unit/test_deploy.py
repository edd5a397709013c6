"""The example configurations are complete and fit together."""

from pathlib import Path

from relayctl.config import RelayConfig
from relayctl.wire.cluster import Clusters
from relayctl.wire.settings import load
from signaling.config import SignalingConfig
from transceiver.config import TransceiverConfig

TOKEN = {"X_CONTROL_TOKEN": "a-secret-of-the-environment"}


def test_examples_fit_together() -> None:
    relay = load(RelayConfig, toml=Path("deploy/relay.toml").read_text())
    transceiver = load(
        TransceiverConfig,
        toml=Path("deploy/transceiver.toml").read_text(),
        environ=TOKEN,
        prefix="X_",
    )
    signaling = load(
        SignalingConfig, toml=Path("deploy/signaling.toml").read_text(), environ=TOKEN, prefix="X_"
    )
    clusters = Clusters(section.cluster() for section in relay.clusters)
    assert clusters.owner(transceiver.listen) == transceiver.cluster
    assert [section.endpoint for section in signaling.transceivers] == [transceiver.listen]
    assert [vip for ingress in signaling.ingresses for vip in ingress.vips] == [
        vip.public for vip in relay.vips
    ]
