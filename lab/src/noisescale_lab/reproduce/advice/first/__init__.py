"""The first policy of `follow`, kept to be measured against."""
