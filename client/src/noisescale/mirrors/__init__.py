"""What a run shows to trackers that the job has anyway: W&B, MLflow, TensorBoard."""
