"""What is recorded while the function runs, and what is known of it."""
