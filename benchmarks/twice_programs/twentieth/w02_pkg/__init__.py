"""Small offline reinforcement learning toolkit."""
