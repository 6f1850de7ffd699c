"""What a user does with a model: train all of it, train adapters, serve it. `jobs.estimate.estimate(model, job)` is the way in."""
