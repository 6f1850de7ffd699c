#!/usr/bin/env python3
"""How long the command takes: cold starts and whole plans, each the best and the median of several processes."""

import statistics
import subprocess
import sys
import time

RUNS = 7
COMMANDS = {
    "import weighbridge": [sys.executable, "-c", "import weighbridge"],
    "weigh --version": [sys.executable, "-m", "weighbridge.cli", "--version"],
    "weigh plan --help": [sys.executable, "-m", "weighbridge.cli", "plan", "--help"],
    "weigh cards": [sys.executable, "-m", "weighbridge.cli", "cards"],
    "weigh plan Qwen/Qwen3-8B": [sys.executable, "-m", "weighbridge.cli", "plan", "Qwen/Qwen3-8B", "--offline"],
    "weigh plan Qwen/Qwen3-8B --method lora --json": [
        sys.executable, "-m", "weighbridge.cli", "plan", "Qwen/Qwen3-8B", "--offline", "--method", "lora", "--json",
    ],
}  # fmt: skip


def seconds(command: list[str]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print a line for each command."""
    for name, command in COMMANDS.items():
        times = [seconds(command) for _ in range(RUNS)]
        print(f"{name:48} best {min(times):6.3f} s   median {statistics.median(times):6.3f} s")


main()
