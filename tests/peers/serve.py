"""Runs llama.cpp's own HTTP server on a model file, until it is ended: serve.py MODEL PORT [GRAMMAR]

With the file of a grammar, every answer keeps to it: Messages takes no grammar with the request.
"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 2
if len(sys.argv) > 3:
    with open(sys.argv[3], encoding="utf-8") as grammar:
        kind = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
        params.sampling.grammar = xllamacpp.CommonGrammar(kind, grammar.read())
server = xllamacpp.Server(params)
threading.Event().wait()
