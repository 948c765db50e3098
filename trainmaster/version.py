"""The version of this release."""

VERSION = "1.0.0"
