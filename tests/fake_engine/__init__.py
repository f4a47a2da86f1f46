"""An engine that does what it is told: a process of its own on a real socket, scripted while it runs.

Left alone it behaves like a small vLLM: `GET /health`, `GET /v1/models`, and chat and text completions,
streamed or not, with usage (see `answers`). Whatever a real engine will not do on demand is a script.

    async def test_something(fake_engine: FakeEngine) -> None:
        await fake_engine.script(scripts.stream(events=3, end="reset"))
        ...                                          # call the gateway, whose engine is fake_engine.url
        await fake_engine.wait(aborted=1)            # no sleeping: waits until it is so, or fails
        [request] = await fake_engine.requests()     # what the engine saw: method, target, headers, body

`fake_engine` (in `fixtures`) is one process for the whole run, reset before each test; a test that kills
its engine, needs two, TLS or other models takes `async with FakeEngine(...) as engine` (in `handle`).

**Scripts** are lists of steps; `scripts` has ready ones. `script(steps, path=None, times=None, at="body")`
adds one. A request is played the first script that was added for its path and has `times` left, and gets
the small vLLM's answer if there is none. Without `path` a script is for every request but the gateway's
own probes (`/health`, `/v1/models`), which `requests()` and the counters leave out as well. `at` says when
it is played: "body", once the request has been read; "head", before its body is read; "connect", before
anything is read.

- `{"send": "text"}`, `{"send_b64": "…"}`: writes these bytes as they are; with `"repeat": n` so many times,
  with `"split": n` in pieces of n bytes, with `"pace": s` and a pause after each piece
- `{"sleep": s}`: waits
- `{"gate": "name"}`: waits until the test calls `open_gate("name")`, once for each pass
- `{"reply": "engine"}`: answers as it would without a script; `"echo"`: with the request as JSON; `"gzip"`:
  with an event stream, compressed if the request accepts that; `"digest"`: with the body's size and hash
- `{"read_body": true}`: reads the body (for scripts at "head")
- `{"hang": true}`: nothing more, until the peer has gone
- `{"close": true}`, `{"reset": true}`: ends the connection with FIN or RST, after what was written

After its last step the engine reads the next request from the same connection; a body that a script at
"head" left unread is thrown away, with all that follows.

**Counters** of `stats()` and `wait()`: `accepted` (connections, all), `connections` (those that carried a
request), `requests`, `answered` (scripts played to the end), `aborted` (the peer left before); and, right
now: `running` scripts, `open` connections. `wait` is for at least so many of the former, exactly so many
of the latter.

**Away and back:** `listen(False)` refuses connections and resets those that are open, as an engine that
loads its model does; `kill()` is SIGKILL; `start()` starts it again on the same port.

By hand: `python -m tests.fake_engine --port 8000` prints both ports; on the second one are `POST /_script`,
`/_reset`, `/_open`, `/_listen` and `GET /_requests`, `/_stats`, `/_wait` (see `control`).
"""
