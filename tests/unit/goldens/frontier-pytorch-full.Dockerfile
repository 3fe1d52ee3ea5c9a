# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch-full for site frontier: PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate, transformers, torchdata; apex for AMD
# Build it by hand, in this folder:  docker build -t pytorch-full .  (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.1.1-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step 9534b38fe40f
COPY layers/base-rocm/ /.sifwright/layers/base-rocm/
RUN ["env", \
     "OPT_ROCM=7.1.1", \
     "OPT_IMAGE=rocm/dev-ubuntu-24.04:7.1.1-complete", \
     "OPT_UPDATES=true", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-rocm"]
ENV ROCM_PATH="/opt/rocm" \
    PATH="/opt/rocm/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step 56f0910ad6b1
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 6c8ff37fbf2f
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 85576f753bc3
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=14.0.0", \
     "OPT_GPU=amd", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.3.1 413a2d315ee8485488fb4fdcc0012e029f570b6b submodules=false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-14.0.0 96e971c9cf26c8fa3aa2f33be55fc36f25055b14 submodules=false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-14.0.0 021715bc84423aa552e811299bcbefba68f87bec submodules=false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-14.0.0 136a213673e9e41c9229236b84a2cc6a013d278e submodules=false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 0147b34839a5
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/4.1.2/mpich-4.1.2.tar.gz 4.1.2 3492e98adab62b597ef0d292fb2459b6123bc80070a8aa0a30be6962075a12f0", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}" \
    HYDRA_LAUNCHER="${HYDRA_LAUNCHER:-fork}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 93c81a8a3597
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.1", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt" \
    PIP_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_CONSTRAINT="/opt/sifwright/constraints.txt" \
    UV_BUILD_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric (aws/aws-ofi-nccl)
# step 31955f3f8b24
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.20.0", \
     "OPT_PROVEN=none", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.20.0 a2a6d08ea98296f99596b5c18b30b8a20d74f609 submodules=true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step c1649222d852
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.25.0", \
     "OPT_AUDIO=2.10.0", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_TENSORBOARD_PLUGIN_PROFILE=", \
     "OPT_TENSORBOARD_PLUGIN_WIT=", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=rocm7.1", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# torchdata: torchdata, with data loaders that resume in the middle of an epoch
# step 334bdab8426f
COPY layers/torchdata/ /.sifwright/layers/torchdata/
RUN ["env", \
     "OPT_VERSION=0.11.0", \
     "bash", "/.sifwright/run", "torchdata"]

# apex-rocm: AMD's apex for ROCm, with its fused optimizers and layer norms
# step 2f7a80c8384d
COPY layers/apex-rocm/ /.sifwright/layers/apex-rocm/
RUN ["env", \
     "OPT_VERSION=1.10.0", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_APEX=git https://github.com/ROCm/apex.git release/1.10.0 e97c6656fb57d03e5fa48ad417853aa497f123ce submodules=false", \
     "bash", "/.sifwright/run", "apex-rocm"]

# mpi4py: mpi4py, compiled against the image's MPI
# step ac0faf4a0f8e
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step c0c23968b1ea
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step 2b69270309f2
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step da1c75278898
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 8e3452d48778
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-full" \
      org.opencontainers.image.description="PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate, transformers, torchdata; apex for AMD" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="frontier" \
      org.sifwright.plan="8e3452d4877807fe817195894f2faa4fb6c9c487648cf39b5c0792e1d058f215"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
