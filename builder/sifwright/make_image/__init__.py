"""Build a plan: a tested image in the folder build/SITE/IMAGE.

`request` prepares a build, `checks` looks at the machine, `steps` runs the steps and assembles the
SIF, `layers` finds and packs what a step changed, `cache` keeps results, `downloads` fetches
wheels ahead, `docker` builds with Docker Engine or podman.
What a layer does is decided in `plan` and written in `render`.
"""
