"""python -m meanfield"""

import sys

try:
    from meanfield.cli import main
except ImportError as error:
    sys.exit(f"meanfield: {error}")

main()
