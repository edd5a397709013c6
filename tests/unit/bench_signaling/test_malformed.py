"""What is counted of the answers to bad offers, and a short run against real services."""

import json

import pytest

from tests.bench_signaling.malformed import Book, judge, measure
from tests.bench_signaling.mutants import Mutant


def refusal(code: str, message: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (201, b"v=0\r\n", ("", "")),
        (201, b"<html>", ("", "the answer is no SDP")),
        (400, refusal("bad_sdp", "line 3: `m=x`"), ("bad_sdp", "")),
        (400, refusal("bad_sdp", "no"), ("bad_sdp", "bad_sdp: 'no' names nothing")),
        (400, b"{}", ("", "no error object")),
        (502, refusal("x", "line 3"), ("x", "a fault of the server")),
    ],
)
def test_judge(status: int, body: bytes, said: tuple[str, str]) -> None:
    assert judge(status, body) == said


def test_the_book_counts_by_status_and_code() -> None:
    book = Book()
    book.note(Mutant("one", b""), 201, b"v=0\r\n", 0.001)
    book.note(Mutant("two", b""), 500, refusal("internal_error", "line 1"), 0.25)
    report = book.report()
    assert report["answers"] == {"201": 1, "500 internal_error": 1}
    assert (report["offers"], report["server_errors"], report["breaches"]) == (2, 1, 1)
    assert report["slowest"] == {"ms": 250.0, "offer": "two"}


def test_real_services_refuse_each_with_a_reason() -> None:
    report = measure(count=100, seed=7)
    assert report["offers"] == 100
    assert report["shown"] == []
    assert (report["server_errors"], report["tracebacks"]) == (0, 0)
    assert report["answers"]["400 bad_sdp"] > 10
    assert report["answers"]["201"] > 10
