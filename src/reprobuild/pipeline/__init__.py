"""Request → lock → image: the steps in their order, the folder envs/, and whether this machine can do it."""
