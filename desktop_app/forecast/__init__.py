"""What will happen: evidence from a running training, causes of running out, alerts. Imports only core and numpy."""
