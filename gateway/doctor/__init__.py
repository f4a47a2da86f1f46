"""What would fail after the start, and what is set wrongly while it runs; each finding with its mend.

`look` gathers evidence and does all the I/O; `before` and `running` judge it, as pure functions. None of the
three imports another: what they share lies beside them. The room stands beside the server: the command line
imports it, and so does `make up`, which looks at a box before a start. So the judges of Docker and the GPU
and `look.machine` need no more than the standard library.
"""
