"""A Hub on the loopback interface, enough of it for the real huggingface_hub client: models in memory, failures to order."""

import hashlib
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import prod
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ITEM_BYTES = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "U8": 1, "F8_E4M3": 1, "I32": 4}


def safetensors_bytes(tensors: dict[str, tuple[str, list[int]]], data: bool = True) -> bytes:
    """A safetensors file of zeros with these names, dtypes and shapes, built by hand from the format's description."""
    header, place = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = prod(shape) * ITEM_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + (bytes(place) if data else b"")


@dataclass
class Repository:
    """One model: files by path, and how the Hub treats whoever asks for it."""

    files: dict[str, bytes]
    gated: bool = False
    renamed_to: str = ""
    revisions: tuple[str, ...] = ("main",)
    total: int | None = None

    @property
    def sha(self) -> str:
        digest = hashlib.sha1(usedforsecurity=False)
        for path, content in sorted(self.files.items()):
            digest.update(path.encode() + content)
        return digest.hexdigest()


@dataclass
class Hub:
    """The server's state: tests fill `models`, set `failure` and read `requests`."""

    models: dict[str, Repository] = field(default_factory=dict)
    failure: tuple[int, dict[str, str], str] | None = None
    """Answer every request with this status, these headers and this body."""
    fail_only: str = ""
    """Let the failure strike only where the path contains this."""
    token: str = "hf_good"
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""
    silent: bool = False
    """Accept connections and never answer."""


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def log_message(self, *_: Any) -> None:
            """Keep the tests' output clean."""

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append((self.command, path, dict(self.headers)))
            if hub.silent:
                hub_gone.wait(5)
                self.close_connection = True
                return
            if hub.failure is not None and hub.fail_only in path:
                status, headers, body = hub.failure
                self._send(status, body.encode(), headers)
            elif path.startswith("/api/models/"):
                self._info(path.removeprefix("/api/models/"))
            elif "/resolve/" in path:
                self._file(path)
            else:
                self._error(404, "RepoNotFound")

        def _info(self, rest: str) -> None:
            name, _, revision = rest.partition("/revision/")
            model = self._model(name, f"/api/models/{{}}{'/revision/' + revision if revision else ''}", revision or "main")
            if model is None:
                return
            blobs = "blobs" in parse_qs(urlsplit(self.path).query)
            siblings = [{"rfilename": path, **({"size": len(content)} if blobs else {})} for path, content in model.files.items()]
            answer: dict[str, Any] = {"_id": "0", "id": name, "sha": model.sha, "private": False, "gated": model.gated, "tags": [],
                                      "downloads": 0, "likes": 0, "siblings": siblings}  # fmt: skip
            if model.total is not None:
                answer["safetensors"] = {"parameters": {"BF16": model.total}, "total": model.total}
            self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

        def _model(self, name: str, template: str, revision: str) -> Repository | None:
            model = hub.models.get(name)
            if model is None:
                self._error(401 if not self._authorized() else 404, "RepoNotFound")
            elif model.renamed_to:
                self._send(307, b"", {"Location": template.format(model.renamed_to)})
            elif revision not in (*model.revisions, model.sha):
                self._error(404, "RevisionNotFound")
            else:
                return model
            return None

        def _authorized(self) -> bool:
            return self.headers.get("Authorization") == f"Bearer {hub.token}"

        def _file(self, path: str) -> None:
            name, _, rest = path.strip("/").partition("/resolve/")
            revision, _, file = rest.partition("/")
            model = self._model(name, f"/{{}}/resolve/{rest}", revision)
            if model is None:
                return
            if model.gated and not self._authorized():
                self._error(403 if self.headers.get("Authorization") else 401, "GatedRepo")
                return
            content = model.files.get(file)
            if content is None:
                self._error(404, "EntryNotFound", {"X-Repo-Commit": model.sha})
                return
            headers = {
                "X-Repo-Commit": model.sha,
                "ETag": f'"{hashlib.sha1(content, usedforsecurity=False).hexdigest()}"',
                "Accept-Ranges": "bytes",
            }
            wanted = self.headers.get("Range", "")
            if not wanted.startswith("bytes="):
                self._send(200, content, headers)
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = content[int(first) : int(last) + 1 if last else None]
            self._send(206, part, {**headers, "Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"})

        def _error(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
            self._send(status, json.dumps({"error": code}).encode(), {"X-Error-Code": code, "X-Error-Message": code, **(headers or {})})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    hub_gone = threading.Event()
    return Handler


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that lives as long as the block."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
