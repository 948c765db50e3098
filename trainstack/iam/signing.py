"""The key pairs of service accounts, with which IAM signs for them: `signBlob`, and so signed URLs.

Source: https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/signBlob
"""

import hmac
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_KEY_BITS = 2048


class SigningKeys:
    """A key pair for each account that has signed something. None survives the stack. Thread-safe."""

    def __init__(self) -> None:
        self._keys: dict[str, RSAPrivateKey] = {}
        self._lock = threading.Lock()

    def sign(self, email: str, message: bytes) -> bytes:
        """The account's signature, RSA with SHA-256; its key is made when it is first needed, in a tenth of a second."""
        from cryptography.hazmat.primitives import hashes  # most stacks never sign
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        with self._lock:
            if email not in self._keys:
                self._keys[email] = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        return self._keys[email].sign(message, padding.PKCS1v15(), hashes.SHA256())

    def is_signature(self, email: str, message: bytes, signature: bytes) -> bool:
        """Whether the account has signed the message so; RSA's signatures of a message are all alike."""
        return email in self._keys and hmac.compare_digest(self.sign(email, message), signature)
