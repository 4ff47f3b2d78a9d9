"""A fake NVIDIA driver library, and a program that reads cards through it."""
