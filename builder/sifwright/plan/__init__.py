"""Everything that a build decides before it starts.

A catalog, a site, an image and the --set options come in. A `Plan` goes out. It has the layers in
order, the value of each option with its origin, and the id of each step. It reads no machine: no
process, network or clock. `lint` criticises a site and its images.
"""
