# Written by sifwright from defs/. The next render replaces this folder.
# Image pytorch-full for site frontier: PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate, transformers, torchdata; apex for AMD
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
# step 325545bc964b947cccca95570334085570da0fa338c02fdf5c8fe1c3371143cb
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step b80964f2cbcbb322ab5a1e90569ca5d3d3dc2a51b7c1447210f429caf57eb76e
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step f0d7abb69a61d414a3826d4e9d710e97fd07c8ae8163f5314cc1a5ef2acc8b32
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.3.1", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=14.0.0", \
     "OPT_GPU=amd", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.3.1 413a2d315ee8485488fb4fdcc0012e029f570b6b false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-14.0.0 96e971c9cf26c8fa3aa2f33be55fc36f25055b14 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-14.0.0 021715bc84423aa552e811299bcbefba68f87bec false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-14.0.0 136a213673e9e41c9229236b84a2cc6a013d278e false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 5020d6f4225b1e9fc90b50a1ef469ff09c9d5484e6e2b6e53271c2ce93fa91ee
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/4.1.2/mpich-4.1.2.tar.gz 4.1.2 3492e98adab62b597ef0d292fb2459b6123bc80070a8aa0a30be6962075a12f0", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}" \
    HYDRA_LAUNCHER="${HYDRA_LAUNCHER:-fork}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 16c93d660c794c6688082db0dbd868b106de8512adf85f67cd0027f68aa4a402
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
# step e0a0cf05dddf069bef423abd02536f464919a53db290a77e28bd431860bf4e78
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.20.0", \
     "OPT_PROVEN=none", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.20.0 a2a6d08ea98296f99596b5c18b30b8a20d74f609 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 7c16532f7cb3142474d583f9c32d06c89e056a15cce6c0374ddd1fe87c4f5601
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
# step 117778d949cddc443e5541b4f818030d4d9d8ffd7e24503b2c2e89c9aa8a35e7
COPY layers/torchdata/ /.sifwright/layers/torchdata/
RUN ["env", \
     "OPT_VERSION=0.11.0", \
     "bash", "/.sifwright/run", "torchdata"]

# apex-rocm: AMD's apex for ROCm, with its fused optimizers and layer norms
# step 40ba6860587bafc967356795de0ba5842f9ce07bdba9c8b6e29bf55aa637472b
COPY layers/apex-rocm/ /.sifwright/layers/apex-rocm/
RUN ["env", \
     "OPT_VERSION=1.10.0", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_APEX=git https://github.com/ROCm/apex.git release/1.10.0 e97c6656fb57d03e5fa48ad417853aa497f123ce false", \
     "bash", "/.sifwright/run", "apex-rocm"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 3507e17aefe250f17043c612fe369a2e9638abde2c9ae7f12752f3ac8bda2808
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step 533533adef4296cb7a858dd958d486313776c971cce23e0d122d69acd4b62e29
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step b57a67d262e73f34662366117c322e1c620ddd15cda3060882de50b226b513f4
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step 70067d5246e5d054b6481233aaf6dc6174e81e5db5dcf9c111dd1116c88da452
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 6e69d97038f3a2b2df0a4792f3d3dcc185016dfcef796af1316f32b548eb6590
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
      org.sifwright.plan="6e69d97038f3a2b2df0a4792f3d3dcc185016dfcef796af1316f32b548eb6590"
# Any user id works: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
