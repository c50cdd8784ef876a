"""How a result is shown: to a person in a terminal or an issue, and to a program."""
