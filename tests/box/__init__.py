"""The compose stack of a box, driven over a scripted docker command."""
