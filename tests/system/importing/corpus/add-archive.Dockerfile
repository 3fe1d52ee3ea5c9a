FROM ubuntu:24.04
ADD packed.tar.gz /opt/tool/
ENV PATH=$PATH:/opt/tool/bin
