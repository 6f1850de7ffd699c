"""huggingface_hub's errors -> ours: one line of what happened, one of what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weighbridge.base.errors import AccessDenied, BadHeader, NetworkError, NotFound, UsageError, WeighError
from weighbridge.sources.text import printable


@contextmanager
def translated(name: str, revision: str | None) -> Iterator[None]:
    """Raise our error for whatever the Hub's client raises inside."""
    try:
        yield
    except WeighError:
        raise
    except Exception as error:
        raise translate(error, printable(name, 100), revision) from error


def translate(error: Exception, name: str, revision: str | None) -> WeighError:
    """The error of ours that says what a client's error means for this model."""
    from huggingface_hub import errors as hub  # noqa: PLC0415  loaded already wherever one of its errors is at hand

    if isinstance(error, hub.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return translate(error.__cause__, name, revision)
    if isinstance(error, hub.GatedRepoError):
        return AccessDenied(f"{name} is gated", "accept its licence on its page, then set HF_TOKEN to a token that may read it")
    if isinstance(error, hub.DisabledRepoError):
        return AccessDenied(f"{name} has been disabled on the Hub", "give a folder or a config.json")
    if isinstance(error, hub.RepositoryNotFoundError):
        return NotFound(f"there is no model {name} on the Hub", "check the spelling; for a private model set HF_TOKEN")
    if isinstance(error, hub.RevisionNotFoundError):
        return NotFound(f"{name} has no revision {printable(revision or 'main', 60)}", "name a branch, a tag or a full commit")
    if isinstance(error, hub.RemoteEntryNotFoundError):
        return NotFound(f"a file of {name} has gone from the Hub", "try again, or name a revision")
    if isinstance(error, hub.HFValidationError):
        return UsageError(f"{name} is not a name the Hub can have", "give org/name[@revision], a folder or a config.json")
    if isinstance(error, hub.SafetensorsParsingError | hub.NotASafetensorsRepoError):
        return BadHeader(f"a safetensors file of {name} has a broken header", "tell its publisher; a config.json alone can be planned")
    if isinstance(error, hub.HfHubHTTPError):
        return _by_status(error.response, name)
    return _transport(error, name)


def _by_status(response: Any, name: str) -> WeighError:
    status = response.status_code
    if status == 401:
        return AccessDenied("the Hub does not accept this token", "set HF_TOKEN to a valid token, or unset it")
    if status == 403:
        return AccessDenied(f"this token may not read {name}", "ask for access on the model's page, and give the token read rights")
    if status == 429:
        seconds = response.headers.get("Retry-After", "")
        wait = f"wait {seconds} s" if seconds.isdigit() else "wait a few minutes"
        return NetworkError("the Hub limits requests from here (429)", f"{wait}, set HF_TOKEN for a higher limit, or use --offline")
    if status == 404:
        return NotFound(f"there is no model {name} on the Hub", "check the spelling; for a private model set HF_TOKEN")
    return NetworkError(f"the Hub answered {status} for {name}", "try again in a minute, or use --offline")


def _transport(error: Exception, name: str) -> WeighError:
    """Errors of the HTTP layer, told by name: the layer itself is the client's choice, not our dependency."""
    names = {base.__name__ for base in type(error).__mro__}
    if names & {"TimeoutException", "TimeoutError"}:
        return NetworkError("the Hub did not answer in time", "try again, or use --offline")
    if names & {"TooManyRedirects"}:
        return NetworkError(f"the Hub redirects {name} in circles", "check HF_ENDPOINT, or use --offline")
    if names & {"JSONDecodeError", "KeyError", "TypeError", "ValidationError", "AttributeError", "FileMetadataError"}:
        return NetworkError("what answered is not the Hub", "check HF_ENDPOINT and the proxy")
    if names & {"TransportError", "ConnectionError", "OfflineModeIsEnabled", "HTTPError", "RuntimeError"}:
        return NetworkError("the connection to the Hub broke", "try again, or use --offline")
    if isinstance(error, OSError):
        return NetworkError(
            f"the Hub's cache cannot be written: {error.strerror or type(error).__name__}", "check HF_HOME and the free space"
        )
    return NetworkError(f"the Hub's client failed: {type(error).__name__}", "run with --debug, or use --offline")
