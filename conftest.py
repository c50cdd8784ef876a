"""The kit's own test configuration."""

pytest_plugins = ["pytester"]
