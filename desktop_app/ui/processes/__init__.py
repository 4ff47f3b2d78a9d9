"""The table of processes: its columns, rows, order, and how one of them is ended."""
