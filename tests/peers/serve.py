"""Runs llama.cpp's own HTTP server on a model file, until it is ended: serve.py MODEL PORT"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = 4096
params.n_parallel = 1
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
threading.Event().wait()
