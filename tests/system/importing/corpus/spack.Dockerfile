FROM spack/ubuntu-jammy:0.22
RUN mkdir -p /opt/environment && \
    ( echo "spack:" \
    &&   echo "  specs: [hdf5+mpi, fftw]" \
    &&   echo "  view: /opt/view" ) > /opt/environment/spack.yaml
RUN cd /opt/environment && . /opt/spack/share/spack/setup-env.sh && \
    spack env activate . && spack install --fail-fast && spack gc -y
ENV PATH="/opt/view/bin:$PATH"
