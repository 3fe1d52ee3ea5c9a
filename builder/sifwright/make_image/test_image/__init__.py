"""Test a new image before it is published, or a published one again.

The tests of its layers are run by the engine. After a build for another processor
(`host/emulation`), the processor of each program in the image is checked. A failure ends the build;
nothing is changed here. The commands of a test are in test.sh of its layer.
"""
