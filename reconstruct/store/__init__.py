"""The database that the relations live in: how it is filled, kept, and found again."""
