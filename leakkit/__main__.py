"""``python -m leakkit``."""

import sys

from leakkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
