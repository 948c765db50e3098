"""One service library per module, behind the ports; its errors are translated only here."""
