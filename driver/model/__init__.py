"""The data of the project: what a claim, a device, a slice and an allocation are.

Pure and frozen. The shapes follow `resource.k8s.io/v1`, so that an object of the API server
decodes straight into them (`driver.wire` does that); nothing here reads, writes or decides.
"""
