"""Which findings of the ledger concern a campaign, and which ones a campaign adds."""
