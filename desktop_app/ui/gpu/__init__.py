"""The GPU page: every field of a card with its history, all cards side by side, and which of them lags."""
