"""A plugin of pytest that gives a client's suite the credentials of a service account, as its key file would.

A key file would need a key of the cloud's. These credentials sign with IAM's `signBlob`, by the client library's own signer, and
their tokens come from `generateAccessToken`, for the account that SUITE_ACCOUNT names.
"""

import os
from typing import Any

import google.auth
from google.auth import compute_engine, iam, impersonated_credentials
from google.auth.transport.requests import Request
from google.oauth2 import service_account

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


class AccountCredentials(service_account.Credentials):
    """Credentials of a service account without its key."""

    def refresh(self, request: Any) -> None:
        """Take a token for the account with the metadata server's credentials."""
        acting = impersonated_credentials.Credentials(
            source_credentials=compute_engine.Credentials(),
            target_principal=self.service_account_email,
            target_scopes=SCOPES,
        )
        acting.refresh(request)
        self.token, self.expiry = acting.token, acting.expiry


def account_default(*_args: Any, **_options: Any) -> tuple[AccountCredentials, str]:
    """What `google.auth.default` returns: credentials of SUITE_ACCOUNT, and the project."""
    account = os.environ["SUITE_ACCOUNT"]
    signer = iam.Signer(Request(), compute_engine.Credentials(), account)
    make: Any = AccountCredentials  # google-auth annotates no constructor
    credentials = make(signer, account, "https://oauth2.googleapis.com/token", scopes=SCOPES)
    return credentials, os.environ["GOOGLE_CLOUD_PROJECT"]


google.auth.default = account_default
