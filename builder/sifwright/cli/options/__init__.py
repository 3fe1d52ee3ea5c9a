"""Options that several commands share, and the objects that they name: catalog, plan, folder."""
