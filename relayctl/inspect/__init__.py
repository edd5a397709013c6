"""Read a relay from outside: over its socket, or from its pinned maps while it is down."""
