"""Modelled on https://github.com/INET-Complexity/macro-main/issues/102. A small agent-based macro model with its data readers."""
