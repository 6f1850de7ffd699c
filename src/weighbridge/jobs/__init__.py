"""What a user does with a model: train all of it, train adapters, serve it."""
