"""Hostile source reaches nothing: no real object, file, module, process or socket."""

# ruff: noqa: E501 - snippets of source in one line each

import subprocess
import sys
import textwrap

import pytest

from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.reading.python import Machine, Unknown

WALKS = {
    "a dunder walk": "return ().__class__.__bases__[0].__subclasses__()",
    "a dunder walk by getattr": "return getattr(getattr([], '__cl' + 'ass__'), '__subclasses__')()",
    "a dunder walk from a class": "class A: pass\nreturn A.__mro__[-1].__subclasses__()[0].__init__.__globals__",
    "a format field": "return '{0.__class__.__mro__[1].__subclasses__}'.format([])",
    "a format field of a function": "def f(): pass\nreturn '{0.__globals__}'.format(f)",
    "globals of a function": "return (lambda: 0).__globals__",
    "code of a function": "return (lambda: 0).__code__",
    "closure of a function": "x = 1\nreturn (lambda: x).__closure__",
    "inside of a native": "return len.fn",
    "inside of a builtin method": "return [].append.fn.__globals__",
    "self of a native": "return len.__self__",
    "frame of a generator": "return (i for i in []).gi_frame",
    "frames of an exception": "try:\n    1 / 0\nexcept Exception as e:\n    return e.__traceback__.tb_frame",
    "reduce": "return [].__reduce_ex__(2)",
    "dict of a module": "import math\nreturn math.__loader__",
    "builtins by name": "return __builtins__",
    "loader of the module": "return __loader__",
    "spec of the module": "return __spec__",
    "mro entry of object": "return object.__subclasses__()",
    "type of type": "return type(type(1)).__subclasses__(type)",
    "pattern of the machine": "import re\nreturn re.compile('a').__class__.__init__",
    "match internals": "import re\nreturn re.match('a', 'a').found",
    "frozen classes": "object.x = 1",
    "partial internals": "from functools import partial\nreturn partial(len).__reduce__",
}
INERT = {
    "os.system": "import os\nos.system('touch PWNED')",
    "subprocess": "import subprocess\nsubprocess.run(['touch', 'PWNED'])",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "importlib": "import importlib\nimportlib.import_module('antigravity')",
    "pickle": "import pickle\npickle.loads(b'x')",
    "ctypes": "import ctypes\nctypes.CDLL('libc.so.6')",
    "pathlib": "from pathlib import Path\nPath('PWNED').write_text('x')",
    "shutil": "import shutil\nshutil.rmtree('/nowhere')",
    "threading": "import threading\nthreading.Thread(target=print).start()",
    "sys modules": "import sys\nsys.modules['os']\n",
    "an import of what is there": "import antigravity, this",
    "a relative import beyond the top": "from ...... import os as x",
    "environment": "import os\nos.environ['HOME']",
    "exec": "exec('import os')",
    "open": "open('PWNED', 'w').write('x')",
    "deleting builtins": "del len",
}


def run(body: str) -> object:
    text = "def main():\n" + textwrap.indent(body, "    ")
    machine = Machine()
    module = machine.source_module("m", text, "m.py", "m")
    return machine.run(lambda: machine.call(machine.getattr(module, "main"), []))


@pytest.mark.parametrize("name", WALKS)
def test_no_attribute_of_a_real_object_is_reached(name: str) -> None:
    try:
        found = run(WALKS[name])
    except (AttributeError, NameError, TypeError, IndexError, KeyError, WeighError):
        return
    assert found is None or isinstance(found, Unknown) or found == []


AUDIT = """
import sys
from weighbridge.reading.python import Machine
import encodings.idna, re
WATCHED = ("open", "import", "exec", "os.", "subprocess", "socket", "shutil", "ctypes", "pty", "compile")
events = []
watching = False
def hook(event, args):
    if watching and event.startswith(WATCHED) and not (event == "compile" and args[1] in ("<unknown>", None)):
        events.append((event, args))
bodies = {bodies!r}
machine = Machine()
ready = machine.source_module("w", "def main():\\n    return '%s' % f'{{1:>3}}'", "w.py", "w")
machine.call(machine.getattr(ready, "main"), [])
sys.addaudithook(hook)
for name, text in bodies.items():
    machine = Machine()
    watching = True
    try:
        module = machine.source_module("m", text, "m.py", "m")
        machine.call(machine.getattr(module, "main"), [])
    except Exception:
        pass
    finally:
        watching = False
    assert not events, (name, events)
print("nothing happened")
"""


def test_reading_hostile_source_touches_nothing() -> None:
    bodies = {name: "def main():\n" + textwrap.indent(body, "    ") for name, body in (WALKS | INERT).items()}
    bodies |= {f"top level {name}": f"{body}\ndef main(): pass\n" for name, body in INERT.items()}
    script = AUDIT.replace("{bodies!r}", repr(bodies)).replace("{{", "{").replace("}}", "}")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "nothing happened", done.stderr[-2000:]


def test_a_refusal_cannot_be_caught() -> None:
    with pytest.raises(CannotTell):
        run("from contextlib import suppress\nwith suppress(BaseException):\n    open('x')\nreturn 1")
    with pytest.raises(CannotTell):
        run("class M:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\nwith M():\n    open('x')\nreturn 1")
    with pytest.raises(CannotTell):
        run("def g():\n    try:\n        yield open('x')\n    except BaseException:\n        yield 1\nreturn list(g())")


def test_machines_share_nothing() -> None:
    first, second = Machine(), Machine()
    module = first.source_module("m", "import math\ndef main():\n    math.pi = 3\n    return math.pi\n", "m.py", "m")
    assert first.call(first.getattr(module, "main"), []) == 3
    module = second.source_module("m", "import math\ndef main(): return math.pi > 3\n", "m.py", "m")
    assert second.call(second.getattr(module, "main"), []) is True
    text = "class A: pass\ndef main():\n    for f in (len, object, int, A.__mro__[-1]):\n        try:\n            f.stain = 1\n        except (AttributeError, TypeError):\n            pass\n"
    module = first.source_module("m", text, "m.py", "m")
    first.call(first.getattr(module, "main"), [])
    module = second.source_module(
        "m", "class A: pass\ndef main(): return [hasattr(f, 'stain') for f in (len, object, int, A)]\n", "m.py", "m"
    )
    assert second.call(second.getattr(module, "main"), []) == [False] * 4
