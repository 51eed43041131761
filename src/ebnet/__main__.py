"""`python -m ebnet` is the `ebnet` program."""

from ebnet.cli.app import main

main()
