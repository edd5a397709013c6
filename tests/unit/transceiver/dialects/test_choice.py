import pytest

from transceiver.dialects.beta import Beta
from transceiver.dialects.choice import DialectName, asked_for, choose
from transceiver.dialects.plain import Plain
from transceiver.dialects.realtime import Realtime
from transceiver.dialects.rtvi import Rtvi


@pytest.mark.parametrize(
    ("name", "label", "kind"),
    [
        ("realtime", "oai-events", Realtime),
        ("realtime-beta", "oai-events", Beta),
        ("rtvi", "chat", Rtvi),
        ("realtime", "chat", Plain),
        ("rtvi", "oai-events", Plain),
        ("plain", "oai-events", Plain),
        ("plain", "chat", Plain),
    ],
)
def test_by_the_call_and_the_label(name: str, label: str, kind: type) -> None:
    assert type(choose(DialectName(name), label, lambda of: of, lambda: "now")) is kind


def test_a_session_is_asked_for_in_the_names_of_its_dialect() -> None:
    session = {"voice": "ash"}
    assert asked_for(DialectName.REALTIME, session) == session
    assert asked_for(DialectName.REALTIME_BETA, {}) == {}
    beta = asked_for(DialectName.REALTIME_BETA, session)
    assert beta == {"type": "realtime", "audio": {"output": {"voice": "ash"}}}
