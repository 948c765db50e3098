"""A plugin of pytest that gives a client's suite credentials that can sign, as a service account's key would.

A service account's key needs a token server, which the stack lacks. These credentials act as the account that the first variable
names, by way of the metadata server's account and IAM's `generateAccessToken` and `signBlob`.
"""

import os
from typing import Any

import google.auth
from google.auth import compute_engine, impersonated_credentials

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def signing_default(*_args: Any, **_options: Any) -> tuple[impersonated_credentials.Credentials, str]:
    """What `google.auth.default` returns: credentials of SUITE_ACCOUNT, and the project."""
    credentials = impersonated_credentials.Credentials(
        source_credentials=compute_engine.Credentials(),
        target_principal=os.environ["SUITE_ACCOUNT"],
        target_scopes=SCOPES,
    )
    return credentials, os.environ["GOOGLE_CLOUD_PROJECT"]


google.auth.default = signing_default
