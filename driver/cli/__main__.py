"""`python -m driver.cli` is `quadrant`."""

from driver.cli.entry import main

if __name__ == "__main__":
    main()
