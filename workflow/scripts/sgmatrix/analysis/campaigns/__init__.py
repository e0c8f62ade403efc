"""Two campaigns side by side: same cells, same load points, launches that are no pairs."""
