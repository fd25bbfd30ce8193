"""`python -m driver.cli` is `quadrant`."""

from driver.cli.main import main

if __name__ == "__main__":
    main()
