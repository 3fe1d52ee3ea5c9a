"""The request of a build: its options, inputs, base image and settings of the machine."""
