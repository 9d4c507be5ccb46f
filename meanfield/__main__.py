"""python -m meanfield"""

from meanfield.cli import main

main()
