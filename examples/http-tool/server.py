"""A service over HTTP, with nothing but the standard library: how deep is a harbour? The depths are invented.

    python3 server.py [PORT]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

DEPTHS = {"Arbroath": 3.5, "Brest": 12.0, "Genoa": 15.0}


class Harbours(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = unquote(self.path.removeprefix("/depth/"))
        # A model may write more than the name.
        found = [{"harbour": name, "metres": metres} for name, metres in DEPTHS.items() if name in asked]
        if found:
            self.answer(200, found[0])
        else:
            # The model is shown what else than 2xx comes back.
            self.answer(404, {"error": f"no harbour {asked}; harbours: {', '.join(DEPTHS)}"})

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
ThreadingHTTPServer(("127.0.0.1", port), Harbours).serve_forever()
