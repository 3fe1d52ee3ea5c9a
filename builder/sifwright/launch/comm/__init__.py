"""The command `check-comm`: run the collectives in an image, read NCCL's log, and judge."""
