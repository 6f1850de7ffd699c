"""Every error a user can meet, in one tree. Only the doors turn them into exit codes and statuses.

WeighError
├── UsageError            the request itself is wrong
├── NotFound              no such model, file or revision
├── AccessDenied          the model exists, but this token may not read it
├── NetworkError          the Hub could not be asked and nothing local could answer
├── BadInput              a config, header, table or file is malformed
│   ├── BadConfig         the model's own classes refuse the configuration
│   └── BadHeader         a truncated or lying checkpoint header
├── CannotTell            a value that decides a shape or a branch is unknown
│   └── DataDependent     it hangs on the data inside a tensor
└── LimitExceeded         reading went past a bound on steps, depth, size or time
"""

MESSAGE_CHARS = 600
"""What comes from a hostile file may be long; a message stays a line."""


def brief(text: str) -> str:
    """The text, cut where it is too long for a message."""
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}…"


class WeighError(Exception):
    """An error with one line of what happened and a hint of what to do."""

    hint = "run with --debug to see where this came from"

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = brief(message)
        super().__init__(self.message)
        if hint is not None:
            self.hint = hint

    def __str__(self) -> str:
        return self.message


class UsageError(WeighError):
    """The request itself is wrong: an unknown option value, a missing argument."""

    hint = "see weigh --help"


class NotFound(WeighError):
    """There is no such model, file or revision."""

    hint = "check the spelling, or give a folder or a config.json"


class AccessDenied(WeighError):
    """The model exists, but is gated or private for this token."""

    hint = "accept the licence on the model's page and set HF_TOKEN"


class NetworkError(WeighError):
    """The Hub could not be asked and nothing local could answer."""

    hint = "check the connection, or give a folder or a config.json"


class BadInput(WeighError):
    """A config, header, table or file is malformed."""

    hint = "check the file named in the message"


class BadConfig(BadInput):
    """The model's own classes refuse this configuration."""

    hint = "the model's own code rejects this config; compare it with the published one"


class BadHeader(BadInput):
    """A checkpoint header is truncated, or its offsets and sizes do not agree."""

    hint = "download the file again"


class CannotTell(WeighError):
    """A value that decides a shape or a branch is unknown.

    `what` is the thing that is unknown, `why` the reason, and `file:line` the place in the model's source.
    """

    hint = "nothing is guessed: supply the missing file or value"

    def __init__(self, what: str, why: str = "", *, file: str = "", line: int = 0, hint: str | None = None) -> None:
        self.what, self.why, self.file, self.line = brief(what), brief(why), file, line
        super().__init__(self.what, hint)

    def __str__(self) -> str:
        text = f"{self.what}: {self.why}" if self.why else self.what
        return f"{self.where}: {text}" if self.file else text

    @property
    def where(self) -> str:
        """`file:line`, or an empty string where no source was being read."""
        return f"{self.file}:{self.line}" if self.file else ""

    def at(self, file: str, line: int) -> "CannotTell":
        """Name the place, once: the innermost one wins."""
        if not self.file:
            self.file, self.line = file, line
        return self


class DataDependent(CannotTell):
    """The answer hangs on the data inside a tensor, which a phantom does not have."""

    hint = "this model's shapes depend on its input's values"


class LimitExceeded(WeighError):
    """Reading went past a bound on steps, depth, size or time: `limit` names which."""

    hint = "the source does more work than a model needs to be built; see --limits"

    def __init__(self, limit: str, message: str, *, file: str = "", line: int = 0) -> None:
        self.limit, self.file, self.line = limit, file, line
        super().__init__(f"{message} at {file}:{line}" if file else message)
