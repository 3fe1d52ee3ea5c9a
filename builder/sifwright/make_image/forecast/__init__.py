"""Forecast a build: which steps will run and why, their time, and the disk space.

A plan and the record of earlier builds come in. The cache is read, and nothing is changed.
`check_machine` checks that the machine has so much space.
"""
