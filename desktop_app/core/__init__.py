"""The vocabulary of every room: time, units, samples, histories and events. Imports only stdlib and numpy."""
