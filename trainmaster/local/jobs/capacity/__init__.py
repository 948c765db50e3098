"""Room for jobs: places on this machine, and what each region's quota leaves."""
