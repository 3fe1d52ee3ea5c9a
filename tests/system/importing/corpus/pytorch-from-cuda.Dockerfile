ARG CUDA=12.4.1
ARG SYSTEM=ubuntu22.04
FROM nvidia/cuda:${CUDA}-cudnn-devel-${SYSTEM}
ARG TORCH_VERSION=2.5.1
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends \
        build-essential \
        # needed by torch.compile
        python3-dev python3-pip git \
    && rm -rf /var/lib/apt/lists/*
RUN pip3 install torch==${TORCH_VERSION} --index-url https://download.pytorch.org/whl/cu124
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64:${LD_LIBRARY_PATH}
