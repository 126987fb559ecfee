"""Will it work here: the machine, its GPUs and engines, compared with what an image needs."""
