"""torch's operations on phantoms, one file a family; importing a file registers its operations."""
