"""`python -m hack.reference`: write all pages anew."""

from hack.reference import commands, pages

if __name__ == "__main__":
    pages.write()
    commands.FILE.write_text(commands.written(commands.FILE.read_text("utf-8")), "utf-8")
