"""Jobs: how many ranks on how many nodes, what starts them, and the script for the scheduler.

A site and a request come in. A batch script goes out, or the reason why such a job cannot run.
`comm` measures the collectives in an image and proves which network they used.
`submit` has the scheduler run the steps of builds.
The run scripts themselves are in runscripts/, outside of this package.
"""
