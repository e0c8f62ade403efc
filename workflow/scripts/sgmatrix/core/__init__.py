"""Records, reasons, schemas, atomic files and paths. Imports nothing else of ours."""
