"""Proves in a finished image, without a GPU, that NCCL or RCCL will load the network plugin."""
