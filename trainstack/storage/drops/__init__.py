"""Detects files that other processes add to a bucket's folder, change or remove."""
