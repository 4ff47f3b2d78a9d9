"""What runs in the interpreter that traces: torch and the standard library only, whatever environment it is."""
