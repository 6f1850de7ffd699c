"""What a user does with a model: train all of it, train adapters, serve it."""

from weighbridge.jobs.estimate import Estimate, estimate
from weighbridge.jobs.job import Job

__all__ = ["Estimate", "Job", "estimate"]
