"""MLflow, plots, the HTML report and the terminal."""
