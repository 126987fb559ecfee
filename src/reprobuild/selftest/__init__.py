"""The self-test from outside: it is started in an image, and its reports are read and compared."""
