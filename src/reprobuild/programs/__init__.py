"""Programs that run by themselves, each as one file, in a Python or a sandbox of their own."""
