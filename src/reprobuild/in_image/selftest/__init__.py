"""The self-test program, in modules; render/program.py makes the one file of them that the image holds."""
