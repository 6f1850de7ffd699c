"""The floor everything stands on: dtypes, units, errors and the registry. Imports nothing of ours."""
