"""python -m meanfield.cli"""

from meanfield.cli import main

main()
