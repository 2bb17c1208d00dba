"""Who may call: processes that know the run's secret; and TLS, where there are files for it.

Forks of one process know the same secret from the beginning. What starts elsewhere is told it:
`launch.hosts.artefact` writes it beside a job's nodes.
"""

import hmac
import pathlib
import secrets
from collections.abc import Iterable
from typing import NamedTuple

_FIELD = "recurrent-replay-secret"  # of a call's metadata
NAME = "recurrent-replay"  # the name in a run's certificate, on every host


class Tls(NamedTuple):
    """Files of TLS, as bytes in PEM's format."""

    certificate: bytes  # of `NAME`, signed by the authority; servers and clients show it
    key: bytes
    authority: bytes  # whose certificates are believed

    @classmethod
    def read(cls, folder: pathlib.Path) -> "Tls":
        """Of a folder with `certificate.pem`, `key.pem` and `authority.pem`.

        Raises:
          OSError: there is none.
        """
        return cls(*((folder / f"{name}.pem").read_bytes() for name in cls._fields))


_secret = secrets.token_hex(32)
_tls: Tls | None = None


def secret() -> str:
    """This process's."""
    return _secret


def use(secret: str, tls: Tls | None = None) -> None:
    """Makes these this process's, before it has a server or a client."""
    global _secret, _tls
    _secret, _tls = secret, tls


def tls() -> Tls | None:
    """The files that this process uses, if any."""
    return _tls


def metadata() -> tuple[tuple[str, str], ...]:
    """The metadata that proves a call to be the run's own."""
    return ((_FIELD, _secret),)


def are_shown(metadata: Iterable[tuple[str, str | bytes]], secret: str) -> bool:
    """Whether a call shows a secret."""
    shown = str(dict(metadata).get(_FIELD, ""))
    return hmac.compare_digest(shown.encode(), secret.encode())
