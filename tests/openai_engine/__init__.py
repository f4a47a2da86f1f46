"""A gateway before an engine of kind "openai": a real llama.cpp server, or what was recorded from one.

Each promise is made once. `make test` plays the recordings on a real socket, `make test-long` keeps the same
promises with llama.cpp itself, which serves what `make up` serves where vLLM cannot run. After a change to
`calls`, or for another version of llama.cpp: `.venv/bin/python -m tests.openai_engine.record`.
"""
