"""HTTP for batches of measurements in, exactly once, and the ledger of every stream."""
