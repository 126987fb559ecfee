"""The self-test from outside: run it in an image, and read and compare its reports."""
