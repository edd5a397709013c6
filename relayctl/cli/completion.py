"""`relayctl completion`: the shell code that completes verbs and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion code of SHELL, e.g. eval "$(relayctl completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    click.echo(kind(root, {}, "relayctl", "_RELAYCTL_COMPLETE").source())
