"""What every part of the advice is made of: numbers, reasons, flags."""
