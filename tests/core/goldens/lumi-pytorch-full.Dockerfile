# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
#
# Image pytorch-full for site lumi, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-full .        (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.0.2-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step 4b97379bd15ed644cf6353328f6b948eda9f1f933f6847d9afe2cd8862d5ebd9
COPY layers/base-rocm/ /.sifwright/layers/base-rocm/
RUN ["env", \
     "OPT_ROCM=7.0.2", \
     "OPT_IMAGE=rocm/dev-ubuntu-24.04:7.0.2-complete", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-rocm"]
ENV ROCM_PATH="/opt/rocm" \
    PATH="/opt/rocm/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step cb5f7465974a35f3b5d5f77038c34142a97b24fcdd4969a9930c9d62a4f3145c
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 43d754860d3247affe091440a418b1e91e81cecc6b9f508cf16ffbac23eac9d0
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step aa9c8fd73ca172c8349268db3dd623e2fa9a3e893d618f8d350ca0a5492a861c
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=2.1.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=amd", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v2.1.0 cf173800a23505a0c6ec9ad42b935bde60a57da2 false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step 107b91ebd9e175e96aade68e520410f699fe31564e5e9fa560c349a859eef901
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step d60280b18941a7c2f316cb5067dea865bc764847540ddf485908c5e2e8934100
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.0", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 20d1373cf86f88e300cc5e959ef646dd3aa407666d22dcc3189a0542f3f83717
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 979c1a3305c304529aac251b7c8337fc7967c57f7001e0dbec4cea2cb2ee7bf8
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
     "OPT_VARIANT=rocm7.0", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpi4py: mpi4py, compiled against the image's MPI
# step 8ac49f4cba876b40aadc06e8e732c1cb937d3ea7d4098cb03b917ad6e568c5c2
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step b73707b5f27ba618642859a4795d292fe165b88f30a3d72ba390133a7481d18a
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=gfx90a", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step 67284e81705ba9cd52bd3e63d42f648501c36357b9a0e4ef5f8c530949458549
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step be2b206e9d3a5d7f0a6b4171f42dd6e4411f352dc9ae14efaa50a13e4550fa7d
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step f5f252efab2d28ad52ec68438899960049bc488b5f068f7d9c69fc8db60b82f8
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
      org.sifwright.site="lumi" \
      org.sifwright.plan="f5f252efab2d28ad52ec68438899960049bc488b5f068f7d9c69fc8db60b82f8" \
      org.sifwright.step.base-rocm="4b97379bd15ed644cf6353328f6b948eda9f1f933f6847d9afe2cd8862d5ebd9" \
      org.sifwright.step.python-venv="cb5f7465974a35f3b5d5f77038c34142a97b24fcdd4969a9930c9d62a4f3145c" \
      org.sifwright.step.build-tools="43d754860d3247affe091440a418b1e91e81cecc6b9f508cf16ffbac23eac9d0" \
      org.sifwright.step.libfabric="aa9c8fd73ca172c8349268db3dd623e2fa9a3e893d618f8d350ca0a5492a861c" \
      org.sifwright.step.mpich="107b91ebd9e175e96aade68e520410f699fe31564e5e9fa560c349a859eef901" \
      org.sifwright.step.pytorch-wheel="d60280b18941a7c2f316cb5067dea865bc764847540ddf485908c5e2e8934100" \
      org.sifwright.step.aws-ofi-nccl="20d1373cf86f88e300cc5e959ef646dd3aa407666d22dcc3189a0542f3f83717" \
      org.sifwright.step.torch-extras="979c1a3305c304529aac251b7c8337fc7967c57f7001e0dbec4cea2cb2ee7bf8" \
      org.sifwright.step.mpi4py="8ac49f4cba876b40aadc06e8e732c1cb937d3ea7d4098cb03b917ad6e568c5c2" \
      org.sifwright.step.deepspeed="b73707b5f27ba618642859a4795d292fe165b88f30a3d72ba390133a7481d18a" \
      org.sifwright.step.accelerate="67284e81705ba9cd52bd3e63d42f648501c36357b9a0e4ef5f8c530949458549" \
      org.sifwright.step.transformers="be2b206e9d3a5d7f0a6b4171f42dd6e4411f352dc9ae14efaa50a13e4550fa7d" \
      org.sifwright.step.run-scripts="f5f252efab2d28ad52ec68438899960049bc488b5f068f7d9c69fc8db60b82f8" \
      org.sifwright.option.base-rocm.rocm="7.0.2" \
      org.sifwright.option.base-rocm.image="rocm/dev-ubuntu-24.04:7.0.2-complete" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.1.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="amd" \
      org.sifwright.option.mpich.version="3.4.3" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="rocm7.0" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.aws-ofi-nccl.gpu="amd" \
      org.sifwright.option.aws-ofi-nccl.version="1.19.2" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.torch-extras.vision="0.25.0" \
      org.sifwright.option.torch-extras.audio="2.10.0" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="rocm7.0" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.deepspeed.version="0.19.8" \
      org.sifwright.option.deepspeed.ops="false" \
      org.sifwright.option.deepspeed.arch="gfx90a" \
      org.sifwright.option.accelerate.version="1.15.0" \
      org.sifwright.option.transformers.version="5.23.0"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
