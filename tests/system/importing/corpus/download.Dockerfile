FROM debian:12
ADD https://example.org/tools/install.sh /opt/install.sh
ADD --checksum=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 https://example.org/data.bin /data/
RUN sh /opt/install.sh
