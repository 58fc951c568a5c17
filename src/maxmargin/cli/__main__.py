"""``python -m maxmargin.cli``."""

from maxmargin.cli.main import main

if __name__ == "__main__":
    main()
