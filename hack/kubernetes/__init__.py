"""A real Kubernetes on one machine, without Docker, built from Go modules, gone without a trace.

``hack/cluster`` is its command line. Only the standard library is used, so that it runs before any
virtual environment exists.
"""
