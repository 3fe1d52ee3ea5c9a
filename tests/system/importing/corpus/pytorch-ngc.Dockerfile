FROM nvcr.io/nvidia/pytorch:24.10-py3
LABEL maintainer="group@example.org" \
      org.opencontainers.image.description="Training image of a group"
RUN pip install --no-deps lightning==2.4.0 && \
    python -c 'import lightning'
ENV NCCL_DEBUG=WARN
