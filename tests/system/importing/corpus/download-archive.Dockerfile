FROM debian:12
ADD https://example.org/src/tool-1.0.tar.gz /src/
