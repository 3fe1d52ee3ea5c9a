# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch with Horovod and mpi4py over the MPI that suits the site
#
# Image pytorch-horovod for site isambard-ai, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-horovod .        (or podman build, or buildah build)
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

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step e55f4f1c5179bf2b6872db10b8d33169b2282f43373bc6c4fce9101032b8bf23
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 7ecd4fec3757901ab1fdf5917c6840e4c540a26f50c441dbd7f53964d40eeb68
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=0.24.1", \
     "OPT_AUDIO=2.9.1", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cu126", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# libfabric: libfabric from source in /opt/libfabric, for Slingshot with the provider cxi
# step 636e976f6765bb7a77fe32e940456c6f4c43c576e742ce1cc7f5afbe5093ebd8
COPY layers/libfabric/ /.sifwright/layers/libfabric/
RUN ["env", \
     "OPT_VERSION=1.22.0", \
     "OPT_PROVIDER=cxi", \
     "OPT_SHS=13.1.0", \
     "OPT_GPU=nvidia", \
     "SOURCE_LIBFABRIC=git https://github.com/ofiwg/libfabric.git v1.22.0 159219639b7fd69d140892120121bbb4d694e295 false", \
     "SOURCE_CASSINI_HEADERS=git https://github.com/HewlettPackard/shs-cassini-headers.git release/shs-13.1.0 2f6e60a44367ff7439dbb2315531b73fcf5dc4c8 false", \
     "SOURCE_CXI_DRIVER=git https://github.com/HewlettPackard/shs-cxi-driver.git release/shs-13.1.0 a1d91b2b0cca3782b7587dadfe7f660e326b53cb false", \
     "SOURCE_LIBCXI=git https://github.com/HewlettPackard/shs-libcxi.git release/shs-13.1.0 9d460216fdc449d53c5c3ff367bbc7c9c65c02fe false", \
     "bash", "/.sifwright/run", "libfabric"]
ENV PATH="/opt/libfabric/bin${PATH:+:$PATH}"

# aws-ofi-nccl: The network plugin that lets NCCL and RCCL use libfabric, proved to load (aws/aws-ofi-nccl)
# step 9a26650cb4c5556110f1cbc8c98f77c5b639273eaf3dbe370f036b5211a68893
COPY layers/aws-ofi-nccl/ /.sifwright/layers/aws-ofi-nccl/
RUN ["env", \
     "OPT_GPU=nvidia", \
     "OPT_VERSION=1.18.0", \
     "OPT_PROVEN=1.22.0 (Isambard-AI)", \
     "OPT_PROVIDER=cxi", \
     "SOURCE_AWS_OFI_NCCL=git https://github.com/aws/aws-ofi-nccl.git v1.18.0 86ebeaf59a2348b22780023effdb682503747de7 true", \
     "bash", "/.sifwright/run", "aws-ofi-nccl"]

# mpich: MPICH from source, binary compatible with the site's Cray MPICH so that it can be bound over it
# step cfe5e25c5186e157343c2a0b54ed1dfb322230ff02513360680f454011f5aacf
COPY layers/mpich/ /.sifwright/layers/mpich/
RUN ["env", \
     "OPT_VERSION=3.4.3", \
     "SOURCE_MPICH=archive https://www.mpich.org/static/downloads/3.4.3/mpich-3.4.3.tar.gz 3.4.3 8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7", \
     "bash", "/.sifwright/run", "mpich"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# mpi4py: mpi4py, compiled against the image's MPI
# step 5b15996d2ecb673f537a5e6f53be6b5afb6437d82259f28489fd122e879e31e0
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# horovod: Horovod for PyTorch, over MPI, Gloo and on NVIDIA GPUs NCCL
# step 151df3a16fe9fa03dc2da1d5a61008d28f5a5773fc177bdbdcc73f2e0a937d6c
COPY layers/horovod/ /.sifwright/layers/horovod/
RUN ["env", \
     "OPT_VERSION=0.28.1", \
     "OPT_PATCH=0.28.1", \
     "OPT_CXX=17", \
     "OPT_MPI=mpich", \
     "OPT_GLOO=true", \
     "OPT_VENDOR=nvidia", \
     "OPT_ARCH=sm_90", \
     "SOURCE_HOROVOD=pip horovod 0.28.1 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0", \
     "bash", "/.sifwright/run", "horovod"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 48eca424eafccfe5e2c6a5e9fa0fc3855d2351f779b5f98ef10c3129e5431361
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-horovod" \
      org.opencontainers.image.description="PyTorch with Horovod and mpi4py over the MPI that suits the site" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="isambard-ai" \
      org.sifwright.plan="48eca424eafccfe5e2c6a5e9fa0fc3855d2351f779b5f98ef10c3129e5431361" \
      org.sifwright.step.base-cuda="97ed4e440a2edbec891041912d8721a8dbe6037501dcf6c55d888bfc2fd6a4b7" \
      org.sifwright.step.python-venv="ad0413075c7950a380560e4eb8f6da6317a38c1b89d4a46fe656d0b8f3f98962" \
      org.sifwright.step.build-tools="887f9515a87eb7561588c20fd6c3530a834bd9de30ccaa1542b2570b860ef2c8" \
      org.sifwright.step.pytorch-wheel="e55f4f1c5179bf2b6872db10b8d33169b2282f43373bc6c4fce9101032b8bf23" \
      org.sifwright.step.torch-extras="7ecd4fec3757901ab1fdf5917c6840e4c540a26f50c441dbd7f53964d40eeb68" \
      org.sifwright.step.libfabric="636e976f6765bb7a77fe32e940456c6f4c43c576e742ce1cc7f5afbe5093ebd8" \
      org.sifwright.step.aws-ofi-nccl="9a26650cb4c5556110f1cbc8c98f77c5b639273eaf3dbe370f036b5211a68893" \
      org.sifwright.step.mpich="cfe5e25c5186e157343c2a0b54ed1dfb322230ff02513360680f454011f5aacf" \
      org.sifwright.step.mpi4py="5b15996d2ecb673f537a5e6f53be6b5afb6437d82259f28489fd122e879e31e0" \
      org.sifwright.step.horovod="151df3a16fe9fa03dc2da1d5a61008d28f5a5773fc177bdbdcc73f2e0a937d6c" \
      org.sifwright.step.run-scripts="48eca424eafccfe5e2c6a5e9fa0fc3855d2351f779b5f98ef10c3129e5431361" \
      org.sifwright.option.base-cuda.cuda="12.6.3" \
      org.sifwright.option.base-cuda.image="nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.pytorch-wheel.version="2.9.1" \
      org.sifwright.option.pytorch-wheel.variant="cu126" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.vision="0.24.1" \
      org.sifwright.option.torch-extras.audio="2.9.1" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cu126" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.libfabric.version="1.22.0" \
      org.sifwright.option.libfabric.provider="cxi" \
      org.sifwright.option.libfabric.shs="13.1.0" \
      org.sifwright.option.libfabric.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.gpu="nvidia" \
      org.sifwright.option.aws-ofi-nccl.version="1.18.0" \
      org.sifwright.option.aws-ofi-nccl.provider="cxi" \
      org.sifwright.option.mpich.version="3.4.3" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.horovod.version="0.28.1" \
      org.sifwright.option.horovod.patch="0.28.1" \
      org.sifwright.option.horovod.cxx="17" \
      org.sifwright.option.horovod.mpi="mpich" \
      org.sifwright.option.horovod.gloo="true" \
      org.sifwright.option.horovod.vendor="nvidia" \
      org.sifwright.option.horovod.arch="sm_90"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
