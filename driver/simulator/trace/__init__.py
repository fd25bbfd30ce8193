"""How well policies place the tasks of a recorded cluster. Pure; draws and clock are arguments."""
