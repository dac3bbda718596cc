"""What a batch size takes and which limit binds."""
