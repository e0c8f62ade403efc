"""MLflow as a view of the history: what a run holds, and how MLflow is made to hold it."""
