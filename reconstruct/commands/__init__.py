"""What a person can ask; each file one subcommand, which imports what is heavy when it runs."""
