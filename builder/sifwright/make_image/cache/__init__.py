"""Keep the results of steps in folders under their keys, for all builds of a user.

Any number of processes on any number of machines share a cache. They claim a key, hold leases on
what they use, and drop what is damaged. `downloads` keeps a second `Store`.
`run_steps` decides what a key covers (step_keys.py).
"""
