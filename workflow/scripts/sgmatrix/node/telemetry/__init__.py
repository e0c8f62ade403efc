"""What a node does while a server runs: read, written once per tick, summed up over windows."""
