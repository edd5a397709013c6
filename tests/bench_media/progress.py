"""What a long measurement says meanwhile: a line a server."""

from rich.console import Console

_SAY = Console(highlight=False, soft_wrap=True)


def tell(text: str) -> None:
    _SAY.print(f"    {text}", style="dim", markup=False)
