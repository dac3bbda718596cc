"""The version of this distribution, also sent to the server with every stream."""

__version__ = "0.1.0"
