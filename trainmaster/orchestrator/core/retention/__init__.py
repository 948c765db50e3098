"""What the policy's retention removes, and what it must not."""
