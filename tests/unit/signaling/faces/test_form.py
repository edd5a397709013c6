import contextlib

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.faces.form import MAX_HEAD, MAX_PARTS, read_form
from signaling.refusal import Refused

KIND = "multipart/form-data; boundary=xyz"


def part(head: str, content: bytes) -> bytes:
    return b"--xyz\r\n" + head.encode() + b"\r\n\r\n" + content + b"\r\n"


NAMED = 'Content-Disposition: form-data; name="%s"'
END = b"--xyz--\r\n"


def test_parts_with_and_without_types() -> None:
    offer = b"v=0\r\no=x\r\n"
    browser = part(NAMED % "sdp", offer) + part(NAMED % "session", b'{"a": 1}') + END
    assert read_form(browser, KIND) == {"sdp": offer, "session": b'{"a": 1}'}
    request = httpx.Request(
        "POST",
        "http://x/",
        files={
            "sdp": ("offer", offer, "application/sdp"),
            "session": (None, '{"a": "\u00fc"}'.encode(), "application/json"),
        },
    )
    request.read()
    form = read_form(request.content, request.headers["content-type"])
    assert form == {"sdp": offer, "session": '{"a": "\u00fc"}'.encode()}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(b"v=0", KIND, id="no_parts"),
        pytest.param(END, KIND + ";" * MAX_HEAD, id="long_type"),
        pytest.param(END, "multipart/form-data; boundary*=x; boundary*0=y", id="pieces_of_type"),
        pytest.param(END, "multipart/form-data; boundary*=idna'x'%ff", id="no_text"),
        pytest.param(part(NAMED % (";" * MAX_HEAD), b"x") + END, KIND, id="long_head"),
        pytest.param(
            part("Content-Disposition: a; name*=a; name*0=b", b"x") + END, KIND, id="pieces"
        ),
        pytest.param(b"", KIND, id="empty"),
        pytest.param(part(NAMED % "sdp", b"x") + END, "multipart/form-data", id="no_boundary"),
        pytest.param(part(NAMED % "sdp", b"x"), KIND, id="cut_off"),
        pytest.param(part("Content-Type: text/plain", b"x") + END, KIND, id="no_name"),
        pytest.param(part(NAMED % "sdp", b"x") * 2 + END, KIND, id="twice"),
        pytest.param(
            b"".join(part(NAMED % n, b"x") for n in range(MAX_PARTS + 1)) + END, KIND, id="many"
        ),
    ],
)
def test_bad_forms(body: bytes, kind: str) -> None:
    with pytest.raises(Refused) as caught:
        read_form(body, kind)
    assert (caught.value.code, caught.value.status) == ("bad_form", 400)


def test_parts_in_a_part_are_its_content() -> None:
    deep = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n)
        for n in range(3000)
    )
    assert read_form(part(NAMED % "sdp", deep) + END, KIND) == {"sdp": deep}


@given(st.binary(), st.text())
def test_anything_is_a_form_or_refused(body: bytes, boundary: str) -> None:
    for content in (body, b"--xyz\r\n" + body + b"\r\n--xyz--"):
        for kind in (KIND, f"multipart/form-data; boundary={boundary}"):
            with contextlib.suppress(Refused):
                read_form(content, kind)


def test_names_of_all_alphabets_are_told_apart() -> None:
    body = b"".join(part(NAMED % name, name.encode()) for name in ("½", "£", "sdp", "")) + END
    assert read_form(body, KIND) == {name: name.encode() for name in ("½", "£", "sdp", "")}
