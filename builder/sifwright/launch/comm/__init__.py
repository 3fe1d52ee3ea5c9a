"""The command `check-comm`: starts the collectives in an image, reads NCCL's log, and judges."""
