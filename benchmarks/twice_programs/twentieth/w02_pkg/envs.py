"""Environment construction."""
import gymnasium as gym


class ShortCartPole(gym.Wrapper):
    """CartPole with a wider spread of initial states and a short horizon."""

    def __init__(self, env, low=-0.12, high=0.12):
        super().__init__(env)
        self._bounds = {"low": low, "high": high}

    def reset(self, *, seed=None, options=None):
        merged = dict(self._bounds, **(options or {}))
        return self.env.reset(seed=seed, options=merged)


def make_env(max_steps=200):
    return ShortCartPole(gym.make("CartPole-v1", max_episode_steps=max_steps))
