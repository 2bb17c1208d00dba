"""A Docker Engine, on a socket in the file system, that keeps what it is told to build.

The command FOLDER/bin/docker builds, as `docker buildx build` does: it copies an image's context to
FOLDER/images/<digest>/, which a push of the image names. Where there is a file FOLDER/full, it
fails instead.
"""

import contextlib
import http.server
import json
import pathlib
import re
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

from tests.launch.gcp.rest import body_of

_VERSION = {"Version": "27.0.0", "ApiVersion": "1.46", "MinAPIVersion": "1.24"}


# xmanager's arguments: docker buildx build -t <tag> -t <tag> -f <file> <folder>.
_COMMAND = """#!{python}
import hashlib, pathlib, shutil, sys, urllib.parse
folder, words = pathlib.Path({folder!r}), sys.argv[1:]
assert words[:2] == ["buildx", "build"], words
context, tags = pathlib.Path(words[-1]), [words[i + 1] for i, w in enumerate(words) if w == "-t"]
assert words[words.index("-f") + 1] == f"{{context}}/Dockerfile", words
if (folder / "full").exists():
    sys.exit("ERROR: failed to solve: no space left on device")
digest = hashlib.sha256()
for file in sorted(path for path in context.rglob("*") if path.is_file()):
    digest.update(f"{{file.relative_to(context)}}\\0".encode() + file.read_bytes())
shutil.copytree(context, folder / "images" / digest.hexdigest(), dirs_exist_ok=True)
for tag in tags:
    (folder / "tags" / urllib.parse.quote(tag, safe="")).write_text(digest.hexdigest())
"""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: pathlib.Path

    def do_GET(self) -> None:
        image = re.fullmatch(r"/images/(.+)/json", self._path())
        if self._path() == "/version":
            self._send(_VERSION)
        elif image and (digest := self._digest(image[1])):
            self._send({"Id": f"sha256:{digest}", "RepoTags": [image[1]], "RepoDigests": []})
        else:
            self._send({"message": f"no such image: {self._path()}"}, 404)

    def do_POST(self) -> None:
        body_of(self)
        push = re.fullmatch(r"/images/(.+)/push", self._path())
        if push:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            name = f"{push[1]}:{query['tag'][0]}"
            self._send({"aux": {"Digest": f"sha256:{self._digest(name)}"}})
        else:
            self._send({"message": self._path()}, 404)

    def address_string(self) -> str:
        """Nothing: a socket in the file system has no address."""
        return ""

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _path(self) -> str:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return re.sub(r"^/v[0-9.]+", "", path)

    def _digest(self, image: str) -> str:
        """The digest of an image by its tag, or by the beginning of its id; empty of none."""
        tag = self.folder / "tags" / urllib.parse.quote(image, safe="")
        by_id = (folder.name for folder in (self.folder / "images").glob(f"{image}*"))
        return tag.read_text() if tag.exists() else next(by_id, "")

    def _send(self, answer: Any, code: int = 200) -> None:
        data = json.dumps(answer).encode() + b"\r\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def serve(folder: pathlib.Path) -> Iterator[None]:
    """Writes FOLDER/bin/docker and serves FOLDER/docker.sock."""
    for name in ("bin", "images", "tags"):
        (folder / name).mkdir()
    command = folder / "bin" / "docker"
    command.write_text(_COMMAND.format(python=sys.executable, folder=str(folder)))
    command.chmod(0o755)
    handler = type("H", (_Handler,), {"folder": folder})
    with _Server(str(folder / "docker.sock"), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
