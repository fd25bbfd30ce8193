"""The functions of the language, one library a file. Each gives its `OVERLOADS`."""
