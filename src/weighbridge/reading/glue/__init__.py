"""Stand-ins for torch and transformers, bound to the interpreter: what interpreted model code imports and touches."""
