"""Will it work here: the machine, its GPUs and engines, held against what an image needs."""
