"""Every written attack at the default limits, each read in a process of its own: time, memory, outcome, and that nothing was touched."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import fuzz_cases

WALL_SECONDS: Final = 150.0
MEMORY_MIB: Final = 2500
CHILD: Final = "import fuzz_attacks; fuzz_attacks.child()"


def run_all(processes: int) -> int:
    """Print a line for each attack; 1 if one of them won."""
    with ThreadPoolExecutor(processes) as pool:
        lost = sum(pool.map(_run_one, _cases()))
    print(f"{lost} findings")
    return int(lost > 0)


def _cases() -> Iterator[tuple[str, str, Any]]:
    for kind, entries in fuzz_cases.attacks().items():
        for name, body in entries.items():
            if kind == "snippet":
                yield "snippet", name, body
            else:
                yield (
                    "custom",
                    name,
                    fuzz_cases.constructor(body) if kind == "constructor" else {"m.py": body, "ring.py": "from .m import M, C\n"},
                )


def _run_one(case: tuple[str, str, Any]) -> bool:
    family, name, data = case
    here = str(Path(__file__).resolve().parent)
    path = os.pathsep.join((here, str(Path(here).parent / "src")))
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        start = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-c", CHILD], input=json.dumps([family, data]), capture_output=True, text=True, cwd=folder,
                timeout=WALL_SECONDS, check=False, env={**os.environ, "PYTHONPATH": path, "WEIGH_CACHE": "off"},
            )  # fmt: skip
            outcome = done.stdout.strip() or f"exit {done.returncode}: {done.stderr.strip().rpartition(chr(10))[2][:200]}"
        except subprocess.TimeoutExpired:
            outcome = "hangs"
        problem = "" if outcome.startswith("fine") else "  <<< FINDING"
        if any(Path(folder).iterdir()):
            problem = "  <<< TOUCHED THE DISK"
        print(f"{family:8} {name:42} {time.monotonic() - start:6.1f} s  {outcome[:170]}{problem}", flush=True)
    return bool(problem)


def child() -> None:
    """One attack, in this process: prints `fine`, its CPU time, its memory and how it ended."""
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    from weighbridge.base.errors import WeighError  # noqa: PLC0415 - under the limit

    family, data = json.loads(sys.stdin.read())
    fuzz_cases.LIMITS = None  # type: ignore[misc]  # the defaults
    try:
        fuzz_cases.FAMILIES[family].run(data)
        outcome = "an answer"
    except WeighError as error:
        outcome = f"{type(error).__name__}: {error}"
    used = resource.getrusage(resource.RUSAGE_SELF)
    state = "fine" if used.ru_maxrss < MEMORY_MIB * 1024 else "large"
    print(f"{state} {used.ru_utime + used.ru_stime:5.1f} s CPU {used.ru_maxrss // 1024:5} MiB  {outcome}"[:400])
