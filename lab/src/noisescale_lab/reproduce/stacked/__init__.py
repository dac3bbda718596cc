"""Many small models trained at once: R replicas stacked along a leading axis, each with its own weights and rates.

Dozens of tiny models in one batched product take little longer than one of them alone, as calls and not arithmetic
bound such trainings.
"""
