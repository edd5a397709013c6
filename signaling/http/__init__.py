"""Connections before the application: TLS, slow clients, one line of log for each request."""
