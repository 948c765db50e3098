"""A certificate authority that lives as long as the stack, trusted only by clients that use its bundle."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAMES = ("googleapis.com", "*.storage.googleapis.com", "*.mtls.googleapis.com", "*.googleapis.com")
"""The certificate's host names; every service's is one label below googleapis.com, where a star stands for one label."""
OWN, BUNDLE = "authority.pem", "bundle.pem"
"""Bundles: this authority alone, and this authority with all that this machine trusts."""
_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(days=1)


class Authority:
    """Issues one certificate for Google's host names.

    The keys never leave the folder, which only its owner can read.
    """

    def __init__(self, folder: Path) -> None:
        """Create keys and certificates in `folder`, replacing those of an earlier start.

        Raises:
            OSError: the folder is not writable.
        """
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # it may exist already, with the state folder's mode
        self.trust = folder / "trust"
        """The folder with the bundles for clients; nothing in it is secret."""
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _certificate(
            "Trainmaster local stack", authority_key, signed_by=None, signing_key=authority_key
        )
        key = ec.generate_private_key(ec.SECP256R1())
        server = _certificate(NAMES[-1], key, signed_by=authority, signing_key=authority_key)
        self.trust.mkdir(exist_ok=True)
        (self.trust / OWN).write_bytes(_pem(authority))
        # A user whose proxy terminates TLS names its authority in REQUESTS_CA_BUNDLE, or in SSL_CERT_FILE,
        # OpenSSL's default.
        trusted = (
            os.environ.get("REQUESTS_CA_BUNDLE") or ssl.get_default_verify_paths().cafile or certifi.where()
        )
        (self.trust / BUNDLE).write_bytes(Path(trusted).read_bytes() + b"\n" + _pem(authority))
        (self.trust / ".curlrc").write_text(f'cacert = "{self.trust / BUNDLE}"\n', encoding="utf-8")
        chain = folder / "server.pem"
        chain.touch(mode=0o600)
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        chain.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()) + _pem(server))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """Server-side TLS. A client that offers both protocols, such as curl, gets HTTP/1.1; HTTP/2 is only for gRPC's."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1", "h2"])  # the server's order decides
        self.context.load_cert_chain(chain)


def _certificate(
    common_name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    signed_by: x509.Certificate | None,
    signing_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """A server's certificate; without `signed_by`, an authority's self-signed one."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    is_authority = signed_by is None
    # Python 3.13 refuses an authority without `keyCertSign` (`ssl.VERIFY_X509_STRICT`).
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signed_by.subject if signed_by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
        )
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False
        )
    )
    if not is_authority:
        names = x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES])
        server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(names, critical=False).add_extension(server, critical=False)
    return builder.sign(signing_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
