FROM rockylinux:9
RUN dnf install -y epel-release && dnf install -y openmpi-devel cmake && dnf clean all
ENV PATH=/usr/lib64/openmpi/bin:${PATH} \
    LD_LIBRARY_PATH=/usr/lib64/openmpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
COPY --chmod=755 entrypoint.sh /usr/local/bin/
RUN ["/bin/bash", "-c", "mpicc --version"]
ENTRYPOINT ["/usr/local/bin/entrypoint.sh"]
