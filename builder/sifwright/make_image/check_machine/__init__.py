"""Check the machine before a build: engine, user ids, disk space, limits, network.

A request, or a `PlannedBuild`, comes in. All that is missing goes out at once, each with its
remedy. Nothing is written or repaired here. How much a build needs is estimated in `forecast`.
"""
