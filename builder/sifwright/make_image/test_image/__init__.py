"""Test a new image before it is published, or a published one again.

The tests of its layers are run by the engine. The programs in an image that was built emulated
are checked for their processor. A failure ends the build; nothing is changed here.
What a test does is written in its layer, test.sh.
"""
