"""Lock files of other tools, as requirements that name each file by its hash."""
