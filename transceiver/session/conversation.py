"""The items of a conversation in their order, as many as fit. Pure."""

from transceiver.session.fields import Refusal, size
from transceiver.session.items import Item

MAX_ITEMS = 1000
MAX_TEXT = 2 * 1024 * 1024  # characters of JSON of them all

ROOT = "root"  # stands before the first item


class Conversation:
    """The oldest items go when there are too many; nobody is told, as with a model's context."""

    def __init__(self, conversation_id: str) -> None:
        self.id = conversation_id
        self._order: list[str] = []
        self._items: dict[str, Item] = {}
        self._sizes: dict[str, int] = {}
        self._text = 0  # sum of the sizes
        self._audio_ms: dict[str, int] = {}  # of spoken replies, as far as known

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._items

    @property
    def text(self) -> int:
        """Characters of JSON that are kept."""
        return self._text

    @property
    def last_id(self) -> str | None:
        return self._order[-1] if self._order else None

    def items(self) -> list[Item]:
        return [self._items[item_id] for item_id in self._order]

    def newest_first(self) -> list[Item]:
        return [self._items[item_id] for item_id in reversed(self._order)]

    def get(self, item_id: str, param: str = "item_id") -> Item:
        """Raises `Refusal`."""
        if item_id not in self._items:
            raise Refusal("item_not_found", f"there is no item {item_id[:64]!r}", param)
        return self._items[item_id]

    def lasts(self, item_id: str, audio_ms: int) -> None:
        """The item's sound takes so long."""
        if item_id in self._items:
            self._audio_ms[item_id] = audio_ms

    def audio_ms(self, item_id: str) -> int | None:
        """How long the item's sound takes, if that is known."""
        return self._audio_ms.get(item_id)

    def before(self, item_id: str) -> str | None:
        """The id of the item before this one; None if it is the first, or not here."""
        if item_id not in self._items:
            return None
        at = self._order.index(item_id)
        return self._order[at - 1] if at else None

    def add(self, item: Item, after: str | None = None) -> list[str]:
        """Put a new item behind `after`, "root" or an item's id; None: at the end. Returns the ids
        of the items that had to go. Raises `Refusal`."""
        if item["id"] in self._items or item["id"] == ROOT:
            detail = f"the id {item['id'][:64]!r} is taken: give another or none"
            raise Refusal("item_already_exists", detail, "item.id")
        at = self._place(after)
        self._order.insert(at, item["id"])
        self._keep(item)
        return self._shrink(keep=item["id"])

    def replace(self, item: Item) -> None:
        """Keep the new state of an item; nothing happens if it is not here any more."""
        if item["id"] in self._items:
            self._text -= self._sizes[item["id"]]
            self._keep(item)

    def remove(self, item_id: str) -> None:
        """Raises `Refusal`."""
        self.get(item_id)
        self._order.remove(item_id)
        self._forget(item_id)

    def _place(self, after: str | None) -> int:
        if after is None:
            return len(self._order)
        if after == ROOT:
            return 0
        self.get(after, "previous_item_id")
        return self._order.index(after) + 1

    def _keep(self, item: Item) -> None:
        self._items[item["id"]] = item
        self._sizes[item["id"]] = size(item, "item")
        self._text += self._sizes[item["id"]]

    def _forget(self, item_id: str) -> None:
        del self._items[item_id]
        self._audio_ms.pop(item_id, None)
        self._text -= self._sizes.pop(item_id)

    def _shrink(self, keep: str) -> list[str]:
        gone: list[str] = []
        while len(self._order) > MAX_ITEMS or self._text > MAX_TEXT:
            oldest = self._order[0] if self._order[0] != keep else self._order[1]
            self._order.remove(oldest)
            self._forget(oldest)
            gone.append(oldest)
        return gone
