"""What passes ask of programs, and what they copy."""
