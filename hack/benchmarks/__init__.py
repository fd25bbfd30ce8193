"""How fast Quadrant is and how much it takes, each figure beside a reference of the same run."""
