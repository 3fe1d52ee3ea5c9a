# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch from the upstream wheels with MPI, mpi4py, DeepSpeed, accelerate and transformers
#
# Image pytorch-full for site local, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-full .        (or podman build, or buildah build)
FROM docker.io/library/debian:bookworm-slim AS root
COPY runner/ /.sifwright/
RUN ["bash", "/.sifwright/make-root", "bookworm", "ca-certificates", ""]

FROM scratch
COPY --from=root /rootfs/ /
ENV PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COPY runner/ /.sifwright/

# base-debian: A small Debian system, made with debootstrap
# step 0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f
COPY layers/base-debian/ /.sifwright/layers/base-debian/
RUN ["env", \
     "OPT_SUITE=bookworm", \
     "OPT_MIRROR=", \
     "OPT_IMAGE_MIRROR=", \
     "OPT_PACKAGES=", \
     "bash", "/.sifwright/run", "base-debian"]

# python-venv: The distribution's Python with a virtual environment in /opt/venv
# step e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04
COPY layers/python-venv/ /.sifwright/layers/python-venv/
RUN ["env", \
     "OPT_PIP=26.3", \
     "bash", "/.sifwright/run", "python-venv"]
ENV VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/venv/bin/activate"

# build-tools: Compilers and what sources are built with: gcc, make, CMake, autotools, git, curl
# step 359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29
COPY layers/build-tools/ /.sifwright/layers/build-tools/
RUN ["env", \
     "bash", "/.sifwright/run", "build-tools"]

# mpich-wheel: MPICH from its binary wheel, for sites without an MPI of their own that would replace it
# step e17c637b58afdaba233b2d8dcef1afd6463f30a5b4f222e791681f0473e9d4bd
COPY layers/mpich-wheel/ /.sifwright/layers/mpich-wheel/
RUN ["env", \
     "OPT_VERSION=5.0.1", \
     "bash", "/.sifwright/run", "mpich-wheel"]
ENV PATH="/opt/mpich/bin${PATH:+:$PATH}"

# pytorch-wheel: PyTorch from the upstream wheels, for CPU, CUDA or ROCm
# step c413c6a431ce690f279fd11df0c899566ce06e385614db8672d635c4718c3047
COPY layers/pytorch-wheel/ /.sifwright/layers/pytorch-wheel/
RUN ["env", \
     "OPT_VERSION=2.13.0", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "pytorch-wheel"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 4f491829c55cf7cf4d47160aa3ccdac871d20e9efb07bb124deae6dfdcc2dbaf
COPY layers/torch-extras/ /.sifwright/layers/torch-extras/
RUN ["env", \
     "OPT_VISION=", \
     "OPT_AUDIO=", \
     "OPT_TEXT=", \
     "OPT_NUMPY=2.4.6", \
     "OPT_TORCHMETRICS=1.9.0", \
     "OPT_TENSORBOARD=2.21.0", \
     "OPT_TORCH_TB_PROFILER=0.4.3", \
     "OPT_SCIKIT_LEARN=1.9.1", \
     "OPT_VARIANT=cpu", \
     "OPT_INDEX=https://download.pytorch.org/whl", \
     "bash", "/.sifwright/run", "torch-extras"]

# mpi4py: mpi4py, compiled against the image's MPI
# step be66d4e65ec3895bc7a2532aafc029823c9abd577d20107b3e915bc52fd1942d
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# deepspeed: DeepSpeed, its kernels compiled when they are first used
# step 9da658c6d581cc836e953771f1bca9cc7e3f200e3c602c2965fcea814b83dc69
COPY layers/deepspeed/ /.sifwright/layers/deepspeed/
RUN ["env", \
     "OPT_VERSION=0.19.8", \
     "OPT_OPS=false", \
     "OPT_ARCH=", \
     "SOURCE_DEEPSPEED=pip deepspeed 0.19.8 9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af", \
     "bash", "/.sifwright/run", "deepspeed"]

# accelerate: Hugging Face accelerate, and its launcher
# step f05d3966f05295cdfbf8656e5d4c5f63f23b0346c2a20ae23be65aabf32fd16f
COPY layers/accelerate/ /.sifwright/layers/accelerate/
RUN ["env", \
     "OPT_VERSION=1.15.0", \
     "bash", "/.sifwright/run", "accelerate"]

# transformers: Hugging Face transformers, with tokenizers and safetensors
# step b7fa2b9c2bfbbde12172decbe39bc956aa45cebefdddc8f0f98feae3410a506a
COPY layers/transformers/ /.sifwright/layers/transformers/
RUN ["env", \
     "OPT_VERSION=5.23.0", \
     "bash", "/.sifwright/run", "transformers"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 073c4c043e7ddb82f47c7622aa0bce242bcf7138669b8d16fd3a8278cc53d320
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
      org.sifwright.site="local" \
      org.sifwright.plan="073c4c043e7ddb82f47c7622aa0bce242bcf7138669b8d16fd3a8278cc53d320" \
      org.sifwright.step.base-debian="0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f" \
      org.sifwright.step.python-venv="e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04" \
      org.sifwright.step.build-tools="359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29" \
      org.sifwright.step.mpich-wheel="e17c637b58afdaba233b2d8dcef1afd6463f30a5b4f222e791681f0473e9d4bd" \
      org.sifwright.step.pytorch-wheel="c413c6a431ce690f279fd11df0c899566ce06e385614db8672d635c4718c3047" \
      org.sifwright.step.torch-extras="4f491829c55cf7cf4d47160aa3ccdac871d20e9efb07bb124deae6dfdcc2dbaf" \
      org.sifwright.step.mpi4py="be66d4e65ec3895bc7a2532aafc029823c9abd577d20107b3e915bc52fd1942d" \
      org.sifwright.step.deepspeed="9da658c6d581cc836e953771f1bca9cc7e3f200e3c602c2965fcea814b83dc69" \
      org.sifwright.step.accelerate="f05d3966f05295cdfbf8656e5d4c5f63f23b0346c2a20ae23be65aabf32fd16f" \
      org.sifwright.step.transformers="b7fa2b9c2bfbbde12172decbe39bc956aa45cebefdddc8f0f98feae3410a506a" \
      org.sifwright.step.run-scripts="073c4c043e7ddb82f47c7622aa0bce242bcf7138669b8d16fd3a8278cc53d320" \
      org.sifwright.option.base-debian.suite="bookworm" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.mpich-wheel.version="5.0.1" \
      org.sifwright.option.pytorch-wheel.version="2.13.0" \
      org.sifwright.option.pytorch-wheel.variant="cpu" \
      org.sifwright.option.pytorch-wheel.index="https://download.pytorch.org/whl" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1" \
      org.sifwright.option.torch-extras.variant="cpu" \
      org.sifwright.option.torch-extras.index="https://download.pytorch.org/whl" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.deepspeed.version="0.19.8" \
      org.sifwright.option.deepspeed.ops="false" \
      org.sifwright.option.accelerate.version="1.15.0" \
      org.sifwright.option.transformers.version="5.23.0"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
