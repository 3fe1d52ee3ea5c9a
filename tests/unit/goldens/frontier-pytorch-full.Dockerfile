# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch-full for site frontier: PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
# Build it by hand, in this folder:  docker build -t pytorch-full .  (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.1.1-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step 9534b38fe40fc734a877c9369288d5bc9027ed00ba050d6bd08f6473ec409aa9
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
# step 725e193f874ded4e95fa0479ceb43679b9e85a69a801ff2c4af4eba755c8c357
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step ba15cb0388d9168a828a3847bcfa34d099ddd56491fc0fd8714f23d330d84b1b
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 058ca62eaf9d6d711505fb4d6837c04f7bfb717a7d9f018887c90b80d0e34a67
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=amd", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.3.1 413a2d315ee8485488fb4fdcc0012e029f570b6b false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step c16c3dac3c009730052cf88cc87a7a4d81cac94e41f394759e82b0e397991db6
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/4.1.2/mpich-4.1.2.tar.gz 4.1.2 3492e98adab62b597ef0d292fb2459b6123bc80070a8aa0a30be6962075a12f0", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step afbb3935fe9a5997215e0ef54ddd084aa53ee75f08ac6aff336881455ee76c62
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.1", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric (aws/aws-ofi-nccl)
# step 58d56796ae3893e59af42093d64d278bee313b20da6c58f2e53870e21625c72a
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 9bec397b2834df0fb0ae2a7123b1e57a2f3e29faf0984e0d8e74c1cbf6fc0439
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
     "OPT_VARIANT=rocm7.1", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpi4py: mpi4py, compiled against the image's MPI
# step fad1f245df0e45ac79e7b92af74ee0b19976a67fe5ee83c564344941b702edab
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step b63450c0eb91c521ff78b01126f9bcdaebe7ede0f5820a85d6902d1d365607b4
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step 7a03c46b638b7390fd60cba638e05ee71586e18c5373585e914fc41385f43fce
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step 41977773e91fd4ec4f7dca2b9bb6aab3f2c6989d30a79543f574a71e40577ab2
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 8c09e4eeead470c743f57be9215a7c0d77d6f20271f732875b1e0b64e569f4a1
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# The tests and the plan stay in the image; nothing of the build does.
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-full" \
      org.opencontainers.image.description="PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="frontier" \
      org.sifwright.plan="8c09e4eeead470c743f57be9215a7c0d77d6f20271f732875b1e0b64e569f4a1"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
