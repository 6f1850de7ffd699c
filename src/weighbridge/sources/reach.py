"""Can the Hub be reached at all? One connection attempt with a short clock, before anything heavy is imported."""

import os
import socket
import threading
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from weighbridge.base.errors import NetworkError, UsageError

CONNECT_SECONDS: Final = 1.2
"""A name server that never answers must not hold up a plan that the catalogue can make."""


def reachable(endpoint: str) -> None:
    """Return where the endpoint, or the proxy in front of it, accepts a connection; NetworkError otherwise."""
    target = urlsplit(_proxy(endpoint) or endpoint)
    host = target.hostname
    try:
        port = target.port or {"http": 80, "https": 443}.get(target.scheme, 443)
    except ValueError:
        host = None
    if not host or target.scheme not in {"http", "https", "socks5", "socks5h"}:
        raise UsageError(f"HF_ENDPOINT is no web address: {endpoint[:100]!r}", "write it as https://host, or unset it")
    outcome: list[OSError | None] = []
    attempt = threading.Thread(target=_connect, args=(host, port, outcome), daemon=True)
    attempt.start()
    attempt.join(_seconds() + 0.1)
    failure = outcome[0] if outcome else TimeoutError()
    if failure is not None:
        raise NetworkError(
            f"the Hub at {host} {_reason(failure)}", "check the connection, use --offline, or give a folder or a config.json"
        )


def _connect(host: str, port: int, outcome: list[OSError | None]) -> None:
    try:
        socket.create_connection((host, port), timeout=_seconds()).close()
    except OSError as error:
        outcome.append(error)
    else:
        outcome.append(None)


def _proxy(endpoint: str) -> str | None:
    parts = urlsplit(endpoint)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if not found or "://" in found else f"http://{found}"


def _seconds() -> float:
    """HF_HUB_ETAG_TIMEOUT, the library's own setting for slow networks, or our short clock."""
    stated = os.environ.get("HF_HUB_ETAG_TIMEOUT", "")
    return min(float(stated), 30.0) if stated.isdigit() else CONNECT_SECONDS


def _reason(failure: OSError) -> str:
    if isinstance(failure, TimeoutError):
        return f"did not answer within {_seconds():g} s"
    if isinstance(failure, ConnectionRefusedError):
        return "refused the connection"
    if isinstance(failure, socket.gaierror):
        return "cannot be found: its name does not resolve"
    return f"cannot be reached ({failure.strerror or type(failure).__name__})"
