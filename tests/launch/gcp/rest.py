"""Google's REST end points as far as a launch calls them: python -m tests.launch.gcp.rest FOLDER

Tokens, service accounts, the project's policy, and Cloud Storage, whose objects are kept as files
in FOLDER/buckets/. What is asked, but for objects, is added to FOLDER/requests.jsonl.
"""

import base64
import hashlib
import http.server
import json
import pathlib
import re
import ssl
import sys
import time
import urllib.parse
from typing import Any

HOSTS = (
    "oauth2.googleapis.com",
    "www.googleapis.com",
    "storage.googleapis.com",
    "iam.googleapis.com",
    "cloudresourcemanager.googleapis.com",
)
_TOKEN = {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}
_NOT_FOUND = {"error": {"code": 404, "message": "Not Found"}}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection's requests. `folder` is set on a subclass."""

    protocol_version = "HTTP/1.1"
    folder: pathlib.Path

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self) -> None:
        self._body = body_of(self)
        url = urllib.parse.urlsplit(self.path)
        self._query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        host, path = self.headers["Host"].partition(":")[0], url.path
        if "/storage/v1/" in path or host == "storage.googleapis.com":
            self._storage(path)
            return
        with (self.folder / "requests.jsonl").open("a") as file:
            file.write(json.dumps([self.command, host, path]) + "\n")
        if path.endswith("/token"):
            self._send(_TOKEN)
        elif host.startswith("iam.") and self.command == "GET":
            self._send({"accounts": []})
        elif host.startswith("iam."):
            self._send({"email": json.loads(self._body)["accountId"]})
        elif path.endswith("IamPolicy"):
            self._send({"bindings": []})
        else:
            self._send(_NOT_FOUND, 404)

    def _storage(self, path: str) -> None:
        """Objects: listed, described, read, written at once or after a first request, removed."""
        upload = re.fullmatch(r"/(?:resumable/)?upload/storage/v1/b/([^/]+)/o", path)
        described = re.fullmatch(r"/(?:download/)?storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", path)
        copied = re.fullmatch(r"/storage/v1/b/([^/]+)/o/(.+)/rewriteTo/b/([^/]+)/o/(.+)", path)
        if upload:
            self._upload(upload.group(1))
        elif copied:
            source, name, target, new = map(urllib.parse.unquote, copied.groups())
            data = self._file(source, name).read_bytes()
            self._write(target, new, data)
            self._send({"done": True, "resource": self._description(target, new)})
        elif described and described.group(2):
            self._object(described.group(1), urllib.parse.unquote(described.group(2)))
        elif described:
            self._bucket(described.group(1), path.endswith("/o"))
        else:  # https://storage.googleapis.com/<bucket>/<object>
            bucket, _, name = urllib.parse.unquote(path).lstrip("/").partition("/")
            self._read(bucket, name)

    def _upload(self, bucket: str) -> None:
        name = self._query.get("name", "")
        if self.command == "POST" and self._query.get("uploadType") == "resumable":
            self._send({}, headers={"Location": f"https://{self.headers['Host']}{self.path}"})
        elif self.command == "PUT" and (self.headers.get("Content-Range") or "").startswith(
            "bytes */"
        ):
            self._send({}, 308)
        else:
            self._write(bucket, name, self._body)
            self._send(self._description(bucket, name))

    def _object(self, bucket: str, name: str) -> None:
        if not self._file(bucket, name).exists():
            self._send(_NOT_FOUND, 404)
        elif self.command == "DELETE":
            self._file(bucket, name).unlink()
            self._send(None, 204)
        elif self._query.get("alt") == "media":
            self._read(bucket, name)
        else:
            self._send(self._description(bucket, name))

    def _bucket(self, bucket: str, listed: bool) -> None:
        if not (self.folder / "buckets" / bucket).exists():
            self._send(_NOT_FOUND, 404)
        elif listed:
            self._send(self._list(bucket))
        else:
            self._send({"name": bucket, "location": "EUROPE-WEST4", "kind": "storage#bucket"})

    def _list(self, bucket: str) -> dict[str, Any]:
        prefix, delimiter = self._query.get("prefix", ""), self._query.get("delimiter", "")
        items, prefixes = [], set()
        for file in sorted((self.folder / "buckets" / bucket).iterdir()):
            name = named(file.name)
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                prefixes.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                items.append(self._description(bucket, name))
        return {"items": items, "prefixes": sorted(prefixes)}

    def _read(self, bucket: str, name: str) -> None:
        file = self._file(bucket, name)
        if not file.exists():
            self._send(_NOT_FOUND, 404)
            return
        data, code = file.read_bytes(), 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted:
            first, last = int(wanted.group(1)), int(wanted.group(2) or len(data))
            if first >= len(data):
                self._send(None, 416)
                return
            data, code = data[first : last + 1], 206
        self._reply(code, data, {})

    def _description(self, bucket: str, name: str) -> dict[str, Any]:
        file = self._file(bucket, name)
        data = file.read_bytes()
        changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(file.stat().st_mtime))
        return {
            "name": name,
            "bucket": bucket,
            "size": str(len(data)),
            "generation": str(file.stat().st_mtime_ns),
            "updated": changed,
            "timeCreated": changed,
            "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode(),
        }

    def _file(self, bucket: str, name: str) -> pathlib.Path:
        return file_of(self.folder, bucket, name)

    def _write(self, bucket: str, name: str, data: bytes) -> None:
        file = self._file(bucket, name)
        new = file.with_name(f"{file.name}.writing")
        new.write_bytes(data)
        new.rename(file)

    def _send(self, answer: Any, code: int = 200, headers: dict[str, str] | None = None) -> None:
        self._reply(code, b"" if answer is None else json.dumps(answer).encode(), headers or {})

    def _reply(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        kind = "application/json" if data[:1] == b"{" else "application/octet-stream"
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def body_of(request: http.server.BaseHTTPRequestHandler) -> bytes:
    """What a request carries, in one piece or in chunks."""
    if request.headers.get("Transfer-Encoding") != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    parts = []
    while size := int(request.rfile.readline(), 16):
        parts.append(request.rfile.read(size))
        request.rfile.readline()
    request.rfile.readline()
    return b"".join(parts)


def file_of(folder: pathlib.Path, bucket: str, name: str) -> pathlib.Path:
    """Where an object is kept."""
    return folder / "buckets" / bucket / urllib.parse.quote(name, safe="")


def named(file: str) -> str:
    """The name of the object that a file keeps."""
    return urllib.parse.unquote(file)


def main(folder: pathlib.Path) -> None:
    """Serves until it is killed."""
    handler = type("FolderHandler", (Handler,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("", 443), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("serving", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
