"""Serves a GGUF model on this machine with llama.cpp, in OpenAI's dialect, until it is stopped or whoever has
started it ends.

    python eval/serve.py FILE PORT THREADS

Prints `ready` when it answers. One request at a time: whoever asks is one run. Threads wait for each other actively, so
that more of them than there are idle cores make it slower, not faster.
"""

import os
import sys
import time

import xllamacpp

# As much as a run of the suites needs; SmolLM2 cannot read more.
CONTEXT = 8192

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = CONTEXT
params.n_parallel = 1
params.use_jinja = True
params.cpuparams.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
print("ready", flush=True)
# Whoever has started it may die without a word.
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(1)
