import pytest

from transceiver.session.conversation import MAX_ITEMS, MAX_TEXT, Conversation
from transceiver.session.fields import Refusal
from transceiver.session.items import Item


def item(item_id: str, text: str = "") -> Item:
    return {"id": item_id, "type": "function_call_output", "output": text}


def ids(conversation: Conversation) -> list[str]:
    return [each["id"] for each in conversation.newest_first()][::-1]


@pytest.fixture
def conversation() -> Conversation:
    conversation = Conversation("conv_1")
    for name in "abc":
        conversation.add(item(name))
    return conversation


def test_items_stand_in_their_order(conversation: Conversation) -> None:
    conversation.add(item("front"), "root")
    conversation.add(item("between"), "a")
    assert ids(conversation) == ["front", "a", "between", "b", "c"]
    assert conversation.last_id == "c"
    assert conversation.before("front") is None
    assert conversation.before("between") == "a"
    assert conversation.before("none") is None


def test_an_item_is_replaced_where_it_stands(conversation: Conversation) -> None:
    conversation.replace(item("b", "new"))
    assert ids(conversation) == ["a", "b", "c"]
    assert conversation.get("b")["output"] == "new"
    conversation.replace(item("none"))
    assert len(conversation) == 3


def test_a_removed_item_is_gone(conversation: Conversation) -> None:
    conversation.lasts("b", 500)
    conversation.remove("b")
    assert ids(conversation) == ["a", "c"]
    assert "b" not in conversation
    conversation.add(item("b"))
    assert conversation.audio_ms("b") is None


@pytest.mark.parametrize("name", ["a", "root"])
def test_an_id_is_given_once(conversation: Conversation, name: str) -> None:
    with pytest.raises(Refusal) as refused:
        conversation.add(item(name))
    assert refused.value.code == "item_already_exists"


def test_what_is_not_there_is_named(conversation: Conversation) -> None:
    for act in (conversation.get, conversation.remove):
        with pytest.raises(Refusal, match="'none'") as refused:
            act("none")
        assert refused.value.param == "item_id"
    with pytest.raises(Refusal) as refused:
        conversation.add(item("d"), "none")
    assert refused.value.param == "previous_item_id"
    assert ids(conversation) == ["a", "b", "c"]


def test_too_many_items_push_out_the_oldest(conversation: Conversation) -> None:
    gone = [name for at in range(MAX_ITEMS) for name in conversation.add(item(str(at)))]
    assert gone == ["a", "b", "c"]
    assert len(conversation) == MAX_ITEMS


def test_too_much_text_pushes_out_the_oldest(conversation: Conversation) -> None:
    for at in range(3):
        conversation.add(item(str(at), "x" * (MAX_TEXT // 3)))
    assert ids(conversation) == ["1", "2"]
    assert conversation.text <= MAX_TEXT


def test_a_new_first_item_is_not_the_one_to_go(conversation: Conversation) -> None:
    gone = [name for at in range(MAX_ITEMS) for name in conversation.add(item(str(at)), "root")]
    assert gone[0] == str(MAX_ITEMS - 4)
    assert conversation.newest_first()[-1]["id"] == str(MAX_ITEMS - 1)


def test_text_is_counted_through_changes(conversation: Conversation) -> None:
    before = conversation.text
    conversation.replace(item("a", "x" * 100))
    assert conversation.text == before + 100
    conversation.remove("a")
    conversation.add(item("a"))
    assert conversation.text == before
