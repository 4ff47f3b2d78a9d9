"""The memory of one step: what is live when, whose it is, and which module holds it."""
