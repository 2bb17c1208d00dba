"""Who Google is here, and who its user is: a certificate that clients trust, and credentials."""

import datetime
import json
import pathlib
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

PROJECT = "some-project"


def write(folder: pathlib.Path, hosts: Sequence[str]) -> None:
    """Writes server.pem and server.key, of a server of these names, and credentials.json."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a Google of these tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.key").write_text(text)
    (folder / "server.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": text,
        "client_email": f"user@{PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    (folder / "credentials.json").write_text(json.dumps(account))


def environment(folder: pathlib.Path) -> dict[str, str]:
    """Variables by which every client of Google's finds credentials and trusts the certificate."""
    trusted = str(folder / "server.pem")
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "credentials.json"),
        "REQUESTS_CA_BUNDLE": trusted,  # of google-auth and google-cloud-storage
        "HTTPLIB2_CA_CERTS": trusted,  # of google-api-python-client
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": trusted,  # of Vertex AI's client
        "CURL_CA_BUNDLE": trusted,  # of TensorFlow's file system
        "NO_GCE_CHECK": "true",
    }
