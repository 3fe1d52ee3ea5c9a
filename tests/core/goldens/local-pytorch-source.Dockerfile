# Written by sifwright, with the folder it stands in, which the next render replaces.
#
# PyTorch and torchvision built from source for the site's GPUs, with the MPI backend
#
# Image pytorch-source for site local, from defs/. Build it by hand, in this folder:
#   docker build -t pytorch-source .        (or podman build, or buildah build)
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

# pytorch-source: PyTorch built from its source, for the site's GPUs and MPI
# step d1044b361c389e7daf4686c115444b7d4d9e424703413fa785d52da4651bae9b
COPY layers/pytorch-source/ /.sifwright/layers/pytorch-source/
RUN ["env", \
     "OPT_VERSION=2.10.0", \
     "OPT_VENDOR=cpu", \
     "OPT_ARCH=", \
     "OPT_MPI_PATCH=2.0", \
     "OPT_SYSTEM_NCCL=true", \
     "OPT_NUMPY_LINE=numpy2-4", \
     "OPT_NUMPY=2.4.6", \
     "SOURCE_PYTORCH=git https://github.com/pytorch/pytorch.git v2.10.0 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0 true", \
     "bash", "/.sifwright/run", "pytorch-source"]
ENV PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# torchvision-source: torchvision built from its source, beside a torch that was
# step bbea03bf9b87faf714e250dbc9165dabcefdcb4ac4b20c92642f2735024b7886
COPY layers/torchvision-source/ /.sifwright/layers/torchvision-source/
RUN ["env", \
     "OPT_VERSION=0.25.0", \
     "OPT_VENDOR=cpu", \
     "OPT_ARCH=", \
     "SOURCE_TORCHVISION=archive https://github.com/pytorch/vision/archive/v0.25.0.tar.gz 0.25.0 a7ac1b3ab489d71f6e27edfad1e27616e4b8a9b1517e60fce4a950600d3510e8", \
     "bash", "/.sifwright/run", "torchvision-source"]

# mpi4py: mpi4py, compiled against the image's MPI
# step a3d174d5566089e1017141cae4390328e8b657284f2ab93dad4ea680b521005d
COPY layers/mpi4py/ /.sifwright/layers/mpi4py/
RUN ["env", \
     "OPT_VERSION=4.1.2", \
     "OPT_OPTIMIZE=2", \
     "SOURCE_MPI4PY=pip mpi4py 4.1.2 56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02", \
     "bash", "/.sifwright/run", "mpi4py"]

# torch-extras: What training scripts commonly import beside torch; an empty version leaves a package out
# step 5fa1f53ff98f4669a65b110a93fcef7321671c1c6e967bb2d1fbd3196bc35ab2
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
     "OPT_VARIANT=", \
     "OPT_INDEX=", \
     "bash", "/.sifwright/run", "torch-extras"]

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step bef9aeba1f8164b231c9dbc3fc8942e587b783b3684968d067441c2afcb57d66
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="pytorch-source" \
      org.opencontainers.image.description="PyTorch and torchvision built from source for the site's GPUs, with the MPI backend" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="local" \
      org.sifwright.plan="bef9aeba1f8164b231c9dbc3fc8942e587b783b3684968d067441c2afcb57d66" \
      org.sifwright.step.base-debian="0e3cbf129acb8dd471c2c1445d458118391233369541ea5c4e5bdf4c48ab4e9f" \
      org.sifwright.step.python-venv="e853097beddbb468c8144c6315aacfd0f1c0b31614975c70163569923d946b04" \
      org.sifwright.step.build-tools="359b0e426bf79d75a3d42548555d1cf852a09c2cae3841856e51e5e7e0eefe29" \
      org.sifwright.step.mpich-wheel="e17c637b58afdaba233b2d8dcef1afd6463f30a5b4f222e791681f0473e9d4bd" \
      org.sifwright.step.pytorch-source="d1044b361c389e7daf4686c115444b7d4d9e424703413fa785d52da4651bae9b" \
      org.sifwright.step.torchvision-source="bbea03bf9b87faf714e250dbc9165dabcefdcb4ac4b20c92642f2735024b7886" \
      org.sifwright.step.mpi4py="a3d174d5566089e1017141cae4390328e8b657284f2ab93dad4ea680b521005d" \
      org.sifwright.step.torch-extras="5fa1f53ff98f4669a65b110a93fcef7321671c1c6e967bb2d1fbd3196bc35ab2" \
      org.sifwright.step.run-scripts="bef9aeba1f8164b231c9dbc3fc8942e587b783b3684968d067441c2afcb57d66" \
      org.sifwright.option.base-debian.suite="bookworm" \
      org.sifwright.option.python-venv.pip="26.3" \
      org.sifwright.option.mpich-wheel.version="5.0.1" \
      org.sifwright.option.pytorch-source.version="2.10.0" \
      org.sifwright.option.pytorch-source.vendor="cpu" \
      org.sifwright.option.pytorch-source.mpi-patch="2.0" \
      org.sifwright.option.pytorch-source.system-nccl="true" \
      org.sifwright.option.pytorch-source.numpy-line="numpy2-4" \
      org.sifwright.option.pytorch-source.numpy="2.4.6" \
      org.sifwright.option.torchvision-source.version="0.25.0" \
      org.sifwright.option.torchvision-source.vendor="cpu" \
      org.sifwright.option.mpi4py.version="4.1.2" \
      org.sifwright.option.mpi4py.optimize="2" \
      org.sifwright.option.torch-extras.numpy="2.4.6" \
      org.sifwright.option.torch-extras.torchmetrics="1.9.0" \
      org.sifwright.option.torch-extras.tensorboard="2.21.0" \
      org.sifwright.option.torch-extras.torch-tb-profiler="0.4.3" \
      org.sifwright.option.torch-extras.scikit-learn="1.9.1"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
