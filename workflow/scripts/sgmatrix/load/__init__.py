"""Warm-up and load points: SGLang's own client, run, checked and recorded."""
