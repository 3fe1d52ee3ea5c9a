"""`python -m sifwright`, and what the console script calls."""

import sys

from sifwright.cli.main import main as run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
