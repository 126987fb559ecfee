"""All inputs of some locks, and reprobuild with what it needs to run, in one archive."""
