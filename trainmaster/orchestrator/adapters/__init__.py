"""One service library each, behind the ports; its errors are translated here and nowhere else."""
