"""What happens on the node: lease, warden, readiness, teardown, log triage."""
