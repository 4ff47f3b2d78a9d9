"""Use cases without Qt: one session with its recorder, runs, estimates, demonstrations and diagnosis."""
