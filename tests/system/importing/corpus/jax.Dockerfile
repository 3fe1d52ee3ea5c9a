FROM nvidia/cuda:12.6.0-runtime-ubuntu24.04
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update | tee /log
RUN pip install 'jax[cuda12]'
