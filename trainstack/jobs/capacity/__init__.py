"""Capacity for jobs: replica slots on this machine, and each region's quota."""
