"""Records on disk until a server has them: segments, frames, losses, room."""
