import re

import pytest

from signaling.faces.page import CONTENT_TYPES
from tests.unit.signaling.fake_transceiver import FakeTransceiver, signaling

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "content_type"),
    [("/", CONTENT_TYPES[".html"]), ("/app.js", CONTENT_TYPES[".js"]), ("/style.css", "text/css")],
)
async def test_files_have_their_types(path: str, content_type: str) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.get(path)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith(content_type)
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert (await client.head(path)).status_code == 200


async def test_an_unchanged_file_is_not_sent_again() -> None:
    _, client = await signaling(FakeTransceiver())
    tag = (await client.get("/app.js")).headers["etag"]
    again = await client.get("/app.js", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


async def test_the_page_loads_only_what_is_served_here() -> None:
    _, client = await signaling(FakeTransceiver())
    todo, seen = ["/"], set[str]()
    while todo:
        path = todo.pop()
        seen.add(path)
        text = (await client.get(path)).text
        assert not re.search(r"(?:src|href|from|url\()\s*=?\s*[\"']?(?:https?:)?//", text)
        names = re.findall(r"(?:src=\"|href=\"|from \"\.)/?([\w.-]+\.(?:js|css))\"", text)
        for name in names:
            assert (await client.get(f"/{name}")).status_code == 200
            if f"/{name}" not in seen:
                todo.append(f"/{name}")
    assert {"/app.js", "/style.css"} <= seen
