"""A program for the Python of the gateway's image: asks addresses that only the stack's networks reach."""

# An address that answers an error has answered.
PROGRAM = """
import http.client, json, sys, urllib.error, urllib.request
def ask(url):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
            return answer.status, answer.read(1 << 22).decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read(1 << 22).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return 0, str(error)
print(json.dumps([ask(url) for url in sys.argv[1:]]))
"""
