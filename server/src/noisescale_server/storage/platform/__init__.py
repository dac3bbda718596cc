"""What every query stands on: tables, engine, driver, placement."""
