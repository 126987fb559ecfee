"""Actors, learner and policy of a small actor-learner system."""
from q22_factory.actor import ActorSpec, actor_main
from q22_factory.learner import Learner, LearnerConfig
from q22_factory.policy import LinearPolicy

__all__ = ["ActorSpec", "actor_main", "Learner", "LearnerConfig", "LinearPolicy"]
