"""The one kind of error, with its exit status (sysexits.h)."""

EX_USAGE = 64  # the command line
EX_DATAERR = 65  # a node list that cannot be read
EX_UNAVAILABLE = 69  # the ranks of the launch did not come together
EX_CONFIG = 78  # the environment is contradictory or does not say enough


class LaunchError(Exception):
    """An error in one line: the mistake and its remedy."""

    def __init__(self, message: str, exit_code: int = EX_CONFIG) -> None:
        super().__init__(message)
        self.exit_code = exit_code
