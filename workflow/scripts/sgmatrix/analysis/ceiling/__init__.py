"""What physics allows a server: bytes, multiplications and collectives of a model on devices.

Two tiers, never mixed. *hard*: every peak at 100 %, collectives without latency, memory, compute
and link perfectly overlapped; no implementation may beat it. *practical*: what large transfers
and products reach, a latency floor for each collective, parts one after another.
"""
