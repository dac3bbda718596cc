"""GET /metrics, and the same figures for OpenTelemetry."""
