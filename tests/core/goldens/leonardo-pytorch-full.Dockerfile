# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
#
# Image pytorch-full for site leonardo, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-full .        (or podman build, or buildah build)
FROM docker.io/nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-cuda: NVIDIA's Ubuntu image with the CUDA toolkit and cuDNN
# step 97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7
COPY layers/base-cuda/ /.sifwright/layers/base-cuda/
RUN ["env", \
     "OPT_CUDA=12.6.3", \
     "OPT_IMAGE=nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-cuda"]
ENV CUDA_HOME="/usr/local/cuda" \
    PATH="/usr/local/cuda/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# openmpi: Open MPI from source, over UCX where the nodes have InfiniBand
# step 1fbf1b6a567bab90a7be1c596377b2c9ecc1d0d6c1feb05801a83f944cb18cde
COPY layers/openmpi/ /.sifwright/layers/openmpi/
RUN ["env", \
     "OPT_VERSION=5.0.10", \
     "OPT_FABRIC=infiniband", \
     "SOURCE_OPENMPI=archive https://download.open-mpi.org/release/open-mpi/v5.0/openmpi-5.0.10.tar.bz2 5.0.10 0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6", \
     "bash", "/.sifwright/run", "openmpi"]
ENV PATH="/opt/openmpi/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 4bd7893bf4c54390d8786f9677d711f4d9d4471e5d4441c7bf6ef2e278df42de
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step cb0a49de5621a451c20d91236d7592b5552b6c52f94f9f1a1cfe3872539a157e
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.25.0", \
     "OPT_AUDIO=2.10.0", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 0df7f9bda69631f7587f7e2b999d23b71958f0cd2d7bea55bdfcdbd00f941c87
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step 6c491343c8ad779856f53fe2af2733dcef555fb7a33ac23dd52603f583a9332e
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=sm_80", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step f901ac8a6433ea697d57bcc9c002167c250bdb784809cdb08675105f61416bb0
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step 1f84a6880e0915b1d66f971dfb01d97b31f7137fb867eb86431e29f0c8822e41
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step b47b0edcda49f290c78ade2aa8c61e9da69605bee167fd5d7ea809e2b28f99f8
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-full" \
      org.opencontainers.image.description="PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="leonardo" \
      org.sifwright.plan="b47b0edcda49f290c78ade2aa8c61e9da69605bee167fd5d7ea809e2b28f99f8" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.openmpi="1fbf1b6a567bab90a7be1c596377b2c9ecc1d0d6c1feb05801a83f944cb18cde" \
      org.sifwright.step.pytorch-wheel="4bd7893bf4c54390d8786f9677d711f4d9d4471e5d4441c7bf6ef2e278df42de" \
      org.sifwright.step.torch-extras="cb0a49de5621a451c20d91236d7592b5552b6c52f94f9f1a1cfe3872539a157e" \
      org.sifwright.step.mpi4py="0df7f9bda69631f7587f7e2b999d23b71958f0cd2d7bea55bdfcdbd00f941c87" \
      org.sifwright.step.deepspeed="6c491343c8ad779856f53fe2af2733dcef555fb7a33ac23dd52603f583a9332e" \
      org.sifwright.step.accelerate="f901ac8a6433ea697d57bcc9c002167c250bdb784809cdb08675105f61416bb0" \
      org.sifwright.step.transformers="1f84a6880e0915b1d66f971dfb01d97b31f7137fb867eb86431e29f0c8822e41" \
      org.sifwright.step.run-scripts="b47b0edcda49f290c78ade2aa8c61e9da69605bee167fd5d7ea809e2b28f99f8" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.openmpi.version="5.0.10" \
      org.sifwright.option.openmpi.fabric="infiniband" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.25.0" \
      org.sifwright.option.torch-extras.audio="2.10.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu126" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.deepspeed.version="0.19.8" \
      org.sifwright.option.deepspeed.ops="false" \
      org.sifwright.option.deepspeed.arch="sm_80" \
      org.sifwright.option.accelerate.version="1.15.0" \
      org.sifwright.option.transformers.version="5.23.0"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
