"""Put a tested image in place, with its record and the recipe folder."""
