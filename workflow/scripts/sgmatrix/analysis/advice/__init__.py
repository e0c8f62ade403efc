"""What a careful expert would say of a plan before any GPU second; never a refusal."""
