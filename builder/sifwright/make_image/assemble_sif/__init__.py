"""Put the results of steps together as a SIF, layered or flat."""
