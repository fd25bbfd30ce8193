# One image for both processes: `quadrant controller` and `quadrant node`.
#
#   docker build -t quadrant .
#   buildah bud -t quadrant --timestamp 0 .        the same bytes each time, from the same base
#
# BASE is any Debian-like image with Python 3.11 or newer and its venv module. Every package is
# locked with its hash; pip's own settings (an index, a folder of wheels, a CA file) are build
# arguments by pip's own names.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ARG PIP_CERT PIP_INDEX_URL PIP_NO_INDEX PIP_FIND_LINKS
ARG PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# What pip and others import on their way would be compiled by date; all of it is compiled below.
ARG PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
RUN python3 -m venv /tools && python3 -m venv --without-pip /opt/quadrant
COPY requirements-build.lock requirements-runtime.lock ./
RUN install="install --quiet --require-hashes --only-binary :all:" \
 && /tools/bin/pip $install -r requirements-build.lock \
 && /tools/bin/pip --python /opt/quadrant/bin/python $install --no-compile \
      -r requirements-runtime.lock
# Of the Kubernetes client only the credentials are used (driver/kube/session.py): without its
# generated models the image is half as big. The last command fails when that is no longer enough.
RUN cd /opt/quadrant/lib/python3*/site-packages/kubernetes \
 && rm -r client config dynamic informer leaderelection stream utils watch \
      aio/dynamic aio/leaderelection aio/stream aio/watch aio/client/api aio/client/models \
 && mkdir aio/client/models \
 && for package in . aio aio/utils aio/client/models; do : > "$package/__init__.py"; done \
 && printf 'from .api_client import ApiClient\nfrom .configuration import Configuration\n' \
      > aio/client/__init__.py \
 && /opt/quadrant/bin/python -B -c 'from kubernetes.aio.client import Configuration; \
      from kubernetes.aio.config import load_incluster_config, load_kube_config'
COPY LICENSE README.md pyproject.toml ./
COPY driver driver
# Compiled here, because the processes' file system is read-only; by content, not by date, so that
# the same sources give the same bytes.
RUN /tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /dist . \
 && /tools/bin/pip --python /opt/quadrant/bin/python install --quiet --no-deps --no-index \
      --no-compile /dist/*.whl \
 && /tools/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
      --output-file /quadrant.cdx.json /opt/quadrant/bin/python \
 && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/quadrant/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="quadrant" \
      org.opencontainers.image.description="A Kubernetes DRA GPU driver that scores devices" \
      org.opencontainers.image.licenses="Apache-2.0" \
      dev.quadrant.sbom="/usr/share/sbom/quadrant.cdx.json"
COPY --from=build /opt/quadrant /opt/quadrant
# Which Python packages are in it (CycloneDX); of the base's packages its own package manager tells.
COPY --from=build /quadrant.cdx.json /usr/share/sbom/quadrant.cdx.json
# Python asks for a home folder to look for a kubeconfig in; a pod has none.
ENV PATH=/opt/quadrant/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/nonexistent \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The node plugin needs root for the kubelet's folders; its pod says so.
USER 65532:65532
ENTRYPOINT ["/opt/quadrant/bin/quadrant"]
