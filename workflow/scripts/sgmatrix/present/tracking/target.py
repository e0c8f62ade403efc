"""Where tracking goes: the SQLite file of the results, another database, or an MLflow server.

`--config tracking_uri=…` comes before MLFLOW_TRACKING_URI, that before `results/mlflow.db`.
A password comes from the environment alone: what `--config` says stands in process lists and in
Snakemake's records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.redact import redact_prose

DEFAULT_DATABASE = Path("results/mlflow.db")
VARIABLE = "MLFLOW_TRACKING_URI"
_OPTION = "tracking_uri"
_FORMS = "sqlite:///<file>, postgresql+psycopg2://<host>/<database>, http(s)://<host>:<port>"
_DATABASES = ("postgresql", "mysql", "mssql")
_SECRET_QUERY = re.compile(
    r"(^|&)(password|passwd|sslpassword|token|api_?key|access_token)=", re.IGNORECASE
)


@dataclass(frozen=True)
class Target:
    """One place that runs are written to."""

    uri: str = field(repr=False)
    """As MLflow takes it; of a database with its password, of a server without."""
    public: str
    """Without user name and password: what may be printed and stored."""
    database: Path | None = None
    """The SQLite file, where it is one."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def is_server(self) -> bool:
        return self.uri.startswith("http")


def find_target(asked: str | None, environment: Mapping[str, str]) -> Target:
    """Return where to track to.

    Args:
        asked: `tracking_uri` of `--config`; None: it says nothing.
        environment: variables of the process.

    Raises:
        SgmatrixError: `config_rejected`.
    """
    if asked is not None:
        check_asked(asked)
    uri = asked or environment.get(VARIABLE)
    if not uri:
        return Target(f"sqlite:///{DEFAULT_DATABASE}", str(DEFAULT_DATABASE), DEFAULT_DATABASE)
    parts = _parts(uri, _OPTION if asked else VARIABLE)
    public = _public(parts)
    if parts.scheme == "sqlite":
        file = Path(unquote(parts.path.removeprefix("/")))
        return Target(f"sqlite:///{file}", str(file), file)
    if parts.scheme in ("http", "https"):
        name = None if parts.username is None else unquote(parts.username)
        word = None if parts.password is None else unquote(parts.password)
        return Target(public.rstrip("/"), public.rstrip("/"), None, name, word)
    return Target(uri, public)


def check_asked(asked: str) -> None:
    """Refuse a `tracking_uri` of `--config` that carries a password or is of no known form.

    Raises:
        SgmatrixError: `config_rejected`.
    """
    parts = _parts(asked)
    user = parts.username is not None and parts.scheme.startswith("http")
    if parts.password is not None or user or _SECRET_QUERY.search(parts.query):
        raise SgmatrixError(
            "config_rejected",
            f"tracking_uri = {_public(parts)} was given with a user name or password, which "
            "process lists and records would show",
            fix="leave them out and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, "
            f"or set {VARIABLE} to the whole URI",
        )


def _parts(uri: str, source: str = _OPTION) -> SplitResult:
    try:
        parts = urlsplit(uri)
        scheme = parts.scheme.partition("+")[0]
        known = (
            (scheme in ("http", "https") and bool(parts.hostname))
            or (scheme == "sqlite" and len(parts.path) > 1)
            or scheme in _DATABASES
        )
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        # whatever stands before the last @ may be a password, also where the form is a wrong one
        shown = redact_prose(re.sub(r"^([\w+.-]+:/+)?.*@", r"\1", uri, flags=re.DOTALL))[:200]
        raise SgmatrixError(
            "config_rejected",
            f"{source} = {shown!r}",
            fix=f"allowed: {_FORMS}" + ("; encode / in a password as %2F" if "@" in uri else ""),
        )
    return parts


def _public(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()
