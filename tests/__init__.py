"""The tests. PYTEST_DONT_REWRITE: pytest has read this file when it hears of the others."""

import sys

if "pytest" in sys.modules:
    # Helpers say what they expected, as tests do.
    sys.modules["pytest"].register_assert_rewrite("tests")
