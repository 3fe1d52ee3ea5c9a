# Written by sifwright with the files of this folder, which the next render replaces.
#
# Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts
#
# Image base-image for site slurm-generic, from defs/. Build it by hand, in this folder:
#   docker build -t base-image .        (or podman build, or buildah build)
FROM nvcr.io/nvidia/pytorch:25.08-py3
USER 0:0
WORKDIR /
COPY runner/ /.sifwright/

# base-image: Somebody else's image, such as pytorch/pytorch, NVIDIA's (NGC) or AMD's rocm/pytorch, with what is in it
# step 9bd94f80b06f4722497e3b46c6446d2cf36831a7e75475a0f39499513d9042a9
COPY layers/base-image/ /.sifwright/layers/base-image/
RUN ["env", \
     "OPT_FROM=docker://nvcr.io/nvidia/pytorch:25.08-py3", \
     "OPT_PYTHON=3.12", \
     "OPT_TORCH=2.8.0", \
     "OPT_CUDA=13.0", \
     "OPT_ROCM=", \
     "OPT_PROGRAM=", \
     "OPT_PLUGINS=/opt/amazon/ofi-nccl /opt/amazon/aws-ofi-nccl /opt/hpcx/nccl_rdma_sharp_plugin /opt/hpcx/hcoll /opt/hpcx/sharp", \
     "OPT_UNSET=NCCL_NET_PLUGIN PIP_CONSTRAINT", \
     "OPT_UPDATES=false", \
     "bash", "/.sifwright/run", "base-image"]
ENV PATH="/opt/base-image/bin${PATH:+:$PATH}" \
    WITH_CONDA="source /opt/base-image/activate" \
    PIP_CONSTRAINT="/opt/sifwright/constraints.txt"

# run-scripts: conda-python-simple, conda-python-distributed and get-master in /runscripts
# step 44b6747cede7acb38083790c1f6dbdb20b619657f33ce3f5a0404f8ae0de93f1
COPY layers/run-scripts/ /.sifwright/layers/run-scripts/
RUN ["env", \
     "bash", "/.sifwright/run", "run-scripts"]
ENV PATH="/runscripts${PATH:+:$PATH}"

# What was done, the tests, and nothing of the build
COPY kept/ /opt/sifwright/
RUN ["rm", "-rf", "/.sifwright"]
LABEL org.opencontainers.image.title="base-image" \
      org.opencontainers.image.description="Somebody else's image, from a registry or an archive, with torch if it has none, and run scripts" \
      org.sifwright.version="0.1.0" \
      org.sifwright.site="slurm-generic" \
      org.sifwright.plan="44b6747cede7acb38083790c1f6dbdb20b619657f33ce3f5a0404f8ae0de93f1"
# Anybody can be the user: docker run --user "$(id -u):$(id -g)"
ENV HOME="/tmp"
WORKDIR /tmp
ENTRYPOINT []
CMD ["bash"]
USER 1000:1000
