"""The steps from a request to a lock and an image, the folder envs/, and checks of this machine."""
