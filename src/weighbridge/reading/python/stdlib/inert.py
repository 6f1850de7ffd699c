"""Modules that touch the world: nothing of them happens. Also warnings and logging, which only speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.stdlib.contexts import Nothing
from weighbridge.reading.python.stdlib.helpers import native, stub
from weighbridge.reading.python.values import Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

NAMES = [
    "subprocess",
    "socket",
    "shutil",
    "pathlib",
    "tempfile",
    "importlib",
    "importlib.util",
    "importlib.metadata",
    "importlib.machinery",
    "pickle",
    "marshal",
    "ctypes",
    "threading",
    "multiprocessing",
    "concurrent",
    "concurrent.futures",
    "asyncio",
    "signal",
    "urllib",
    "urllib.request",
    "http",
    "http.client",
    "requests",
    "time",
    "datetime",
    "platform",
    "getpass",
    "glob",
    "fnmatch",
    "io",
    "gc",
    "weakref",
    "traceback",
    "pdb",
    "unittest",
    "unittest.mock",
    "hashlib",
    "base64",
    "struct",
    "array",
    "bz2",
    "gzip",
    "zipfile",
    "tarfile",
    "uuid",
    "secrets",
    "queue",
    "builtins",
    "linecache",
    "dis",
    "tokenize",
    "codeop",
    "runpy",
    "pkgutil",
    "atexit",
    "resource",
    "mmap",
    "select",
    "ssl",
    "email",
    "csv",
    "configparser",
    "argparse",
    "pprint",
    "heapq",
    "bisect",
    "statistics",
    "fractions",
    "decimal",
    "cmath",
    "locale",
    "gettext",
    "unicodedata",
    "html",
    "xml",
    "sqlite3",
    "contextvars",
    "types_",
    "timeit",
    "profile",
    "cProfile",
    "copyreg",
    "__main__",
    "ast",
    "inspect_",
    "site",
    "sysconfig",
    "zoneinfo",
    "calendar",
    "difflib",
]
LOG_CALLS = (
    "debug",
    "info",
    "warning",
    "warn",
    "error",
    "critical",
    "exception",
    "log",
    "warning_once",
    "info_once",
    "setLevel",
    "addHandler",
)


def silent(name: str) -> Native:
    """A function without effect."""
    return Native(lambda *_args, **_kwargs: None, name, lazy=True)


def logger() -> Namespace:
    """A logger that says nothing."""
    entries: dict[str, Any] = {name: silent(name) for name in LOG_CALLS}
    entries |= {"isEnabledFor": native(lambda _machine, _level: False, "isEnabledFor"), "level": 30}
    entries["getEffectiveLevel"] = native(lambda _machine: 30, "getEffectiveLevel")
    return stub("logger", entries)


def _logging_module(_machine: Machine) -> Namespace:
    entries: dict[str, Any] = {name: silent(name) for name in (*LOG_CALLS, "basicConfig", "captureWarnings")}
    entries |= {"DEBUG": 10, "INFO": 20, "WARNING": 30, "WARN": 30, "ERROR": 40, "CRITICAL": 50, "NOTSET": 0}
    entries["getLogger"] = native(lambda _machine, *_args: logger(), "getLogger")
    return stub("logging", entries)


def _warnings_module(_machine: Machine) -> Namespace:
    entries: dict[str, Any] = {name: silent(name) for name in ("warn", "simplefilter", "filterwarnings", "resetwarnings", "warn_explicit")}
    entries["catch_warnings"] = native(lambda _machine, **_options: Nothing([]), "catch_warnings")
    return stub("warnings", entries)


def _environment_get(_machine: Machine, _name: Any, default: Any = None) -> Any:
    return default


def path_module(_machine: Machine) -> Namespace:
    """os.path: no path exists."""
    return stub("os.path", {name: native(lambda _machine, *_args: False, name) for name in ("exists", "isfile", "isdir", "islink")})


def os_module(machine: Machine) -> Namespace:
    """os: an empty environment, no files."""
    environment = {"get": native(_environment_get, "get"), "__getitem__": native(_missing_variable, "__getitem__")}
    return stub(
        "os", {"environ": stub("os.environ", environment), "getenv": native(_environment_get, "getenv"), "path": path_module(machine)}
    )


def _missing_variable(_machine: Machine, name: Any) -> Any:
    raise KeyError(name)


def _sys_module(_machine: Machine) -> Namespace:
    return stub(
        "sys",
        {
            "version_info": (3, 11, 0, "final", 0),
            "maxsize": 2**63 - 1,
            "platform": "linux",
            "byteorder": "little",
            "modules": {},
            "argv": [""],
        },
    )


def _future_module(_machine: Machine) -> Namespace:
    return Namespace("__future__", {}, lambda name: Unknown(f"__future__.{name}", "stub"))


def inert(name: str) -> Any:
    """A module whose names are inert."""
    return lambda _machine: stub(name)


MODULES = {
    **{name: inert(name) for name in NAMES if not name.endswith("_") or name.startswith("__")},
    "logging": _logging_module,
    "warnings": _warnings_module,
    "os": os_module,
    "os.path": path_module,
    "sys": _sys_module,
    "__future__": _future_module,
}
