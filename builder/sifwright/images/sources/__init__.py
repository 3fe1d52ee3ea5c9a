"""Images of any source: a registry, an archive, a folder, an engine, a SIF; read, never started."""
