"""What an attacker or an operator does to a live relay, with calls going on."""
