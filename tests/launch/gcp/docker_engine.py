"""A Docker Engine, on a socket in the file system, that keeps what it is told to build.

An image's context is unpacked to FOLDER/images/<digest>/, which a push of the image names. The
command FOLDER/bin/docker tells it what to build, as `docker buildx build` does; where there is a
file FOLDER/full, that one fails instead.
"""

import contextlib
import hashlib
import http.server
import io
import json
import pathlib
import re
import socketserver
import sys
import tarfile
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

from tests.launch.gcp.rest import body_of

_VERSION = {"Version": "27.0.0", "ApiVersion": "1.46", "MinAPIVersion": "1.24"}


# xmanager's arguments: docker buildx build -t <tag> -t <tag> -f <file> <folder>.
_COMMAND = """#!{python}
import http.client, io, pathlib, socket, sys, tarfile, urllib.parse
folder, words = pathlib.Path({folder!r}), sys.argv[1:]
assert words[:2] == ["buildx", "build"], words
context, tags = words[-1], [words[i + 1] for i, word in enumerate(words) if word == "-t"]
assert words[words.index("-f") + 1] == context + "/Dockerfile", words
if (folder / "full").exists():
    sys.exit("ERROR: failed to solve: no space left on device")
archive = io.BytesIO()
with tarfile.open(fileobj=archive, mode="w") as tar:
    tar.add(context, arcname=".")
for tag in tags:
    connection = http.client.HTTPConnection("docker")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(folder / "docker.sock"))
    connection.request("POST", "/build?t=" + urllib.parse.quote(tag), archive.getvalue())
    assert connection.getresponse().status == 200
"""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: pathlib.Path
    tagged: dict[str, str]  # digest by repository:tag
    pushed: list[str]

    def do_GET(self) -> None:
        path = self._path()
        image = re.fullmatch(r"/images/(.+)/json", path)
        if path == "/version":
            self._send(_VERSION)
        elif image and self._digest(image.group(1)):
            digest = self._digest(image.group(1))
            self._send({"Id": digest, "RepoTags": [image.group(1)], "RepoDigests": []})
        else:
            self._send({"message": f"no such image: {path}"}, 404)

    def do_POST(self) -> None:
        path = self._path()
        push = re.fullmatch(r"/images/(.+)/push", path)
        if path == "/build":
            self._build(body_of(self))
        elif push:
            body_of(self)
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            name = f"{push.group(1)}:{query['tag'][0]}"
            self.pushed.append(name)
            self._send({"aux": {"Digest": self.tagged[name]}})
        else:
            self._send({"message": path}, 404)

    def address_string(self) -> str:
        """Of a socket that has none."""
        return ""

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _path(self) -> str:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return re.sub(r"^/v[0-9.]+", "", path)

    def _build(self, context: bytes) -> None:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        with tarfile.open(fileobj=io.BytesIO(context)) as archive:
            digest = f"sha256:{_digest_of(archive)}"
            archive.extractall(self.folder / "images" / digest.removeprefix("sha256:"))
        self.tagged[query["t"][0]] = digest
        self._send({"stream": f"Successfully built {digest.removeprefix('sha256:')[:12]}\n"})

    def _digest(self, image: str) -> str:
        by_id = [d for d in self.tagged.values() if d.removeprefix("sha256:").startswith(image)]
        return by_id[0] if by_id else self.tagged.get(image, "")

    def _send(self, answer: Any, code: int = 200) -> None:
        data = json.dumps(answer).encode() + b"\r\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _digest_of(archive: tarfile.TarFile) -> str:
    """The same for the same files, whenever they were packed."""
    digest = hashlib.sha256()
    for member in sorted(archive.getmembers(), key=lambda member: member.name):
        file = archive.extractfile(member) if member.isfile() else None
        digest.update(f"{member.name}\0".encode() + (file.read() if file else b""))
    return digest.hexdigest()


@contextlib.contextmanager
def serve(folder: pathlib.Path) -> Iterator[list[str]]:
    """Serves FOLDER/docker.sock, writes FOLDER/bin/docker; gives the names of what is pushed."""
    command = folder / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(_COMMAND.format(python=sys.executable, folder=str(folder)))
    command.chmod(0o755)
    pushed: list[str] = []
    handler = type("H", (_Handler,), {"folder": folder, "tagged": {}, "pushed": pushed})
    with _Server(str(folder / "docker.sock"), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield pushed
        server.shutdown()
