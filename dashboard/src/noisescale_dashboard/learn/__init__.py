"""The page that explains: the ideas in plain words, every term once, and what people ask first."""
