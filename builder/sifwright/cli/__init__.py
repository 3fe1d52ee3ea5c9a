"""The command line: the parser, its arguments, and one module for each command.

Words come in; lines on the terminal and an exit code go out. Nothing is decided here.
`options` has what several commands share.
"""
