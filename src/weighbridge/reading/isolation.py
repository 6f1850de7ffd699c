"""Run a reading in a child process with bounds on its time and memory, and without network.

Reading never executes what it reads; the child is for what no interpreter can bound, such as one slow call inside Python itself.
What comes back is plain JSON.
"""

import contextlib
import importlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.base import errors
from weighbridge.base.errors import CannotTell, LimitExceeded, WeighError

MEBI: Final = 2**20


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Bounds the operating system holds the child to."""

    cpu_seconds: int = 60
    memory_bytes: int = 4096 * MEBI
    wall_seconds: float = 120.0


def run_isolated(function_path: str, payload: Any, limits: ProcessLimits | None = None) -> Any:
    """Call `module:function` with a JSON value in a child process and return its JSON result; our errors come back as themselves."""
    bounds = limits or ProcessLimits()
    request = json.dumps({"function": function_path, "payload": payload, "cpu": bounds.cpu_seconds, "memory": bounds.memory_bytes})
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path[:0] = {sys.path!r}; from weighbridge.reading.isolation import child; child()",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter, our own code
            command, input=request, capture_output=True, text=True, timeout=bounds.wall_seconds, check=False, env=_environment()
        )
    except subprocess.TimeoutExpired:
        raise LimitExceeded("seconds", f"reading took more than {bounds.wall_seconds:.0f} s") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise LimitExceeded("memory", _last_line(done.stderr) or f"the reading process ended with {done.returncode}") from None
    if "error" in answer:
        raise _revive(answer["error"])
    return answer["result"]


def _environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "XDG_CACHE_HOME", "WEIGH_CACHE", "SYSTEMROOT", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _revive(found: dict[str, Any]) -> WeighError:
    kind: Any = getattr(errors, found["kind"], WeighError)
    if "what" in found:
        made: WeighError = kind(found["what"], found["why"], file=found["file"], line=found["line"], hint=found["hint"])
    elif kind is LimitExceeded:
        made = LimitExceeded(found["limit"], found["message"])
    else:
        made = kind(found["message"], found["hint"])
    return made


def _describe(error: WeighError) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
    if isinstance(error, CannotTell):
        described.update(what=error.what, why=error.why, file=error.file, line=error.line)
    if isinstance(error, LimitExceeded):
        described["limit"] = error.limit
    return described


def child() -> None:
    """The child's side: bound itself, run, answer on standard output."""
    request = json.loads(sys.stdin.read())
    _bound(request["cpu"], request["memory"])
    _close_network()
    module, _, name = request["function"].partition(":")
    try:
        answer = {"result": getattr(importlib.import_module(module), name)(request["payload"])}
    except WeighError as error:
        answer = {"error": _describe(error)}
    except (MemoryError, RecursionError) as error:
        answer = {"error": {"kind": "LimitExceeded", "limit": "memory", "message": f"{type(error).__name__} while reading", "hint": ""}}
    sys.stdout.write(json.dumps(answer))


def _bound(cpu_seconds: int, memory_bytes: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    for kind, value in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))
    sys.setrecursionlimit(20_000)


def _close_network() -> None:
    """Take sockets away from everything in this process."""

    class Closed(socket.socket):
        def __init__(self, *_: Any, **__: Any) -> None:
            raise OSError("the reading process has no network")

    socket.socket = Closed  # type: ignore[misc]  # this process is ours alone
    socket.create_connection = Closed
