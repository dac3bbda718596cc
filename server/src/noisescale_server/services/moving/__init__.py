"""A project as a folder of Parquet files."""
