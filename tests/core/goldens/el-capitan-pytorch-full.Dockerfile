# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
#
# Image pytorch-full for site el-capitan, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-full .        (or podman build, or buildah build)
FROM docker.io/rocm/dev-ubuntu-24.04:7.1.1-complete
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-rocm: AMD's Ubuntu image with all of ROCm in /opt/rocm
# step 8c03cc67a51fdaf3c9eb1b53ed579fbf51061f3577d056ab40cce3eb1b0e54a4
COPY layers/base-rocm/ /.sifwright/layers/base-rocm/
RUN ["env", \
     "OPT_ROCM=7.1.1", \
     "OPT_IMAGE=rocm/dev-ubuntu-24.04:7.1.1-complete", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-rocm"]
ENV ROCM_PATH="/opt/rocm" \
    PATH="/opt/rocm/bin${PATH:+:$PATH}"

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step faf7c2d407ccfb6f3c5c75d08e6e1252c7f67fadc78a13dd7f9fcf0182c97364
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step a1013bc650ecb3c31bdbde3d161c80adab5ce63dfba05d9f6823da4cdd93805f
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 7b3005b9b27303c49bfed34fc3b4a6874737b05da7da1af01f82ccd8a73662f8
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
# step d7c6ee59ac8f4ff76f1f306eacab41b0aed1271f6a0c8fbf1d47b3162054d065
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/4.1.2/mpich-4.1.2.tar.gz 4.1.2 3492e98adab62b597ef0d292fb2459b6123bc80070a8aa0a30be6962075a12f0", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step 153f83bc468d1c828e612ba014d9eba0b22f24eda2f625300884f7dabc0cbdad
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VARIANT=rocm7.1", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 1793eb3b480a32faab8d83ac606ba377a3140f46c35999ea6f959d596740e214
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=amd", \
     "OPT_VERSION=1.19.2", \
     "OPT_PROVEN=2.3.1 (Frontier)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.19.2 17120adbfd9721f4d0861360b09f05a8d9c5fba4 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 4c06844e5f783a425bc9837cf4cc1db807f9795be40022810bf9d7b67d9265e1
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
# step 0026296d64a71df005fd8e0b31c14172ed5d8da250e75168ae9765343b16f269
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step 0a545ebe34d1b39f959493dfacfa4129c3dc3b74737e5ba766d2ad802c5e756f
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=gfx942", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step 068f94aa96d8c8120c21d9172f817a928f63746e6aad38f2d7c08916b82c39b5
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step 8bd5b8b58ab2daee5216a4b298b3d64f7a6ccedb66558b0d0056868daf694585
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step d17e4b52e550f5e944a01d1eaa3ae2a95873c7d4e49eff7393a47c0eed6eb6cb
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
      org.sifwright.site="el-capitan" \
      org.sifwright.plan="d17e4b52e550f5e944a01d1eaa3ae2a95873c7d4e49eff7393a47c0eed6eb6cb" \
      org.sifwright.step.base-rocm="8c03cc67a51fdaf3c9eb1b53ed579fbf51061f3577d056ab40cce3eb1b0e54a4" \
      org.sifwright.step.python-venv="faf7c2d407ccfb6f3c5c75d08e6e1252c7f67fadc78a13dd7f9fcf0182c97364" \
      org.sifwright.step.build-tools="a1013bc650ecb3c31bdbde3d161c80adab5ce63dfba05d9f6823da4cdd93805f" \
      org.sifwright.step.libfabric="7b3005b9b27303c49bfed34fc3b4a6874737b05da7da1af01f82ccd8a73662f8" \
      org.sifwright.step.mpich="d7c6ee59ac8f4ff76f1f306eacab41b0aed1271f6a0c8fbf1d47b3162054d065" \
      org.sifwright.step.pytorch-wheel="153f83bc468d1c828e612ba014d9eba0b22f24eda2f625300884f7dabc0cbdad" \
      org.sifwright.step.aws-ofi-nccl="1793eb3b480a32faab8d83ac606ba377a3140f46c35999ea6f959d596740e214" \
      org.sifwright.step.torch-extras="4c06844e5f783a425bc9837cf4cc1db807f9795be40022810bf9d7b67d9265e1" \
      org.sifwright.step.mpi4py="0026296d64a71df005fd8e0b31c14172ed5d8da250e75168ae9765343b16f269" \
      org.sifwright.step.deepspeed="0a545ebe34d1b39f959493dfacfa4129c3dc3b74737e5ba766d2ad802c5e756f" \
      org.sifwright.step.accelerate="068f94aa96d8c8120c21d9172f817a928f63746e6aad38f2d7c08916b82c39b5" \
      org.sifwright.step.transformers="8bd5b8b58ab2daee5216a4b298b3d64f7a6ccedb66558b0d0056868daf694585" \
      org.sifwright.step.run-scripts="d17e4b52e550f5e944a01d1eaa3ae2a95873c7d4e49eff7393a47c0eed6eb6cb" \
      org.sifwright.option.base-rocm.rocm="7.1.1" \
      org.sifwright.option.base-rocm.image="rocm/dev-ubuntu-24.04:7.1.1-complete" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.libfabric.version="2.3.1" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="amd" \
      org.sifwright.option.mpich.version="4.1.2" \
      org.sifwright.option.pytorch-wheel.version="2.10.0" \
      org.sifwright.option.pytorch-wheel.variant="rocm7.1" \
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
      org.sifwright.option.torch-extras.variant="rocm7.1" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.deepspeed.version="0.19.8" \
      org.sifwright.option.deepspeed.ops="false" \
      org.sifwright.option.deepspeed.arch="gfx942" \
      org.sifwright.option.accelerate.version="1.15.0" \
      org.sifwright.option.transformers.version="5.23.0"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
