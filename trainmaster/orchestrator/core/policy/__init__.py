"""What requests may ask for, as the policy file says."""
