from fastapi import FastAPI
from fastapi.responses import Response

from signaling.faces import described
from signaling.refusal import Code


def test_codes_of_one_status_are_told_together() -> None:
    told = described.errors(Code.BAD_SDP, Code.ALL_FULL, Code.BAD_FORM, Code.BAD_SDP)
    assert list(told) == [400, 503]
    assert told[400]["description"] == "`bad_sdp`, `bad_form`"
    assert "headers" not in told[400]
    assert told[503]["headers"]["Retry-After"]["required"] is True


def app(*, keys_wanted: bool) -> FastAPI:
    made = FastAPI(title="t", version="1", description="d")

    @made.post(
        "/x/{call_id}",
        response_class=Response,
        responses=described.answer(201, "done", described.sdp("The answer"), "Location"),
        openapi_extra={**described.body(described.sdp("The offer")), **described.WITH_KEY},
    )
    async def x(call_id: described.CallIdText, model: str | None = None) -> None: ...

    described.document(made, keys_wanted=keys_wanted)
    return made


def test_the_document_has_errors_of_ours_only_and_the_keys() -> None:
    document = app(keys_wanted=True).openapi()
    operation = document["paths"]["/x/{call_id}"]["post"]
    assert "422" not in operation["responses"]
    assert list(document["components"]["schemas"]) == ["Error"]
    assert operation["security"] == [{"key": []}]
    assert list(operation["requestBody"]["content"]) == ["application/sdp"]
    assert list(operation["responses"]["201"]["headers"]) == ["Location"]
    call_id, model = operation["parameters"]
    assert call_id["schema"]["pattern"].startswith("^rtc_")
    assert (model["name"], model["required"]) == ("model", False)


def test_it_is_made_once_and_keys_are_optional_in_an_open_service() -> None:
    made = app(keys_wanted=False)
    document = made.openapi()
    assert document["paths"]["/x/{call_id}"]["post"]["security"] == [{}, {"key": []}]
    assert made.openapi() is document
