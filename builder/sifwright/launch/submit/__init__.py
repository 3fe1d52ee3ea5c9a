"""Builds as jobs: the graph of jobs, the schedulers' commands, and the record of what was sent."""
