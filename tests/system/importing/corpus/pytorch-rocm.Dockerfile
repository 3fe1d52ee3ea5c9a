FROM rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0
ARG PYTORCH_ROCM_ARCH="gfx90a;gfx942"
RUN apt-get update
RUN apt-get install -y libfabric-dev
RUN pip install deepspeed
