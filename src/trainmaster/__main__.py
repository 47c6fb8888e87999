"""`python -m trainmaster`: the command line."""

from trainmaster.cli.main import main

if __name__ == "__main__":
    main()
