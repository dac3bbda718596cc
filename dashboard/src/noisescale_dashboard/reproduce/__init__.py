"""The page of what `noisescale reproduce` found."""
