"""The Python half of the kernel: IPython's shell behind the C server. `app.run` is the way in."""
