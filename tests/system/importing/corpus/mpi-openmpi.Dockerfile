FROM ubuntu:22.04
ARG OMPI=4.1.6
RUN apt-get update && apt-get install -y build-essential wget && apt-get clean
WORKDIR /tmp/build
RUN wget -q https://download.open-mpi.org/release/open-mpi/v4.1/openmpi-${OMPI}.tar.bz2 && \
    tar xf openmpi-${OMPI}.tar.bz2
RUN cd openmpi-${OMPI} && ./configure --prefix=/opt/openmpi && make -j4 install
ENV PATH=/opt/openmpi/bin:$PATH LD_LIBRARY_PATH=/opt/openmpi/lib:$LD_LIBRARY_PATH
RUN rm -rf /tmp/build/*
