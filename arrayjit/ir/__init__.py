"""What a program is: plain frozen data, and the few things that every user of it needs."""
