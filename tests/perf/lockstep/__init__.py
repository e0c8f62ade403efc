"""A lock-step server, and what a load client says of it beside what is true."""
