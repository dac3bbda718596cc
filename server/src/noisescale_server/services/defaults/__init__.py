"""What projects take for granted of prices, and who may say so."""
