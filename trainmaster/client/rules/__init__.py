"""Reads, checks and changes rules, gives orders, and reads champions."""
