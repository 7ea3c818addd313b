"""The viewer: spans as one page that a browser opens without a network."""
