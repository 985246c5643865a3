"""Mathematics of numbers: it knows no frames."""
