from tests.clients.opus_source import packets


def test_twenty_seconds_of_speech_without_repetition() -> None:
    """A payload that stands twice could not tell which packet came back."""
    encoded = packets()
    assert len(encoded) == 1000
    assert len(set(encoded)) == 1000
    assert all(encoded)
