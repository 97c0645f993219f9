"""Serves a GGUF model on this machine with llama.cpp, in OpenAI's dialect, until it is stopped.

    python eval/serve.py FILE PORT

Prints `ready` when it answers. One request at a time: whoever asks is one run.
"""

import sys
import time

import xllamacpp

# As much as a run of the suites needs; SmolLM2 cannot read more.
CONTEXT = 8192
THREADS = 2

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = CONTEXT
params.n_parallel = 1
params.use_jinja = True
params.cpuparams.n_threads = THREADS
server = xllamacpp.Server(params)
print("ready", flush=True)
while True:
    time.sleep(3600)
