"""Push a SIF to an OCI registry, and pull it again, partition by partition."""
